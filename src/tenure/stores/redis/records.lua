-- Records between two slots, the newest so many, and all of the slot at which the limit cuts: the caller sorts.
--
-- KEYS: bodies of the history, slots, wishes. ARGV: since, until, limit. Answers with (run, packed)...

local answer = {}

local function add(runs)
  for first = 1, #runs, 1000 do
    local last = math.min(#runs, first + 999)
    local bodies = redis.call('HMGET', KEYS[1], unpack(runs, first, last))
    for n = first, last do
      answer[#answer + 1], answer[#answer + 2] = runs[n], bodies[n - first + 1]
    end
  end
end

for place = 2, 3 do
  local told = redis.call('ZREVRANGEBYSCORE', KEYS[place], ARGV[2], ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  local runs, cut = {}, told[#told]
  for n = 1, #told, 2 do
    if told[n + 1] ~= cut then
      runs[#runs + 1] = told[n]
    end
  end
  add(runs)
  if cut then
    add(redis.call('ZRANGEBYSCORE', KEYS[place], cut, cut))
  end
end
return answer
