-- The names in these indexes between two bounds of bytes.
--
-- KEYS: indexes. ARGV: the lower bound, the upper bound, as ZRANGEBYLEX takes them.

local answer = {}
for _, index in ipairs(KEYS) do
  for _, name in ipairs(redis.call('ZRANGEBYLEX', index, ARGV[1], ARGV[2])) do
    answer[#answer + 1] = name
  end
end
return answer
