-- Marks that touch since..until, the newest so many, newest first.
--
-- KEYS: marks by slot. ARGV: since, until, limit. Answers with their members.

local AHEAD = 1e15
local since, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
local answer, offset = {}, 0
while #answer < limit do
  local some = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[2], '-inf', 'LIMIT', offset, 200)
  for _, member in ipairs(some) do
    if #answer < limit and tonumber(string.sub(member, 1, 16)) - AHEAD >= since then
      answer[#answer + 1] = member
    end
  end
  if #some < 200 then
    break
  end
  offset = offset + 200
end
return answer
