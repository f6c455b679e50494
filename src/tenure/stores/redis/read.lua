-- Documents and what is asked beside them, all of one moment; it writes nothing (R40).
--
-- ARGV: how many asks, then for each: how many runs, the runs, records to keep or '', marks to keep, the last
-- slot that `before` lets through or ''. KEYS: for each ask the document, and only where they are needed
-- bodies of the history; slots, wishes, marks by slot, marks by end.
-- Answers with the time in milliseconds, then for each ask: version, body, bodies of the runs, heads
-- (run, slot, packed)..., the newest end of the marks beyond, the last slot.

local HEADS = 500
local AHEAD = 1e15

local key_at, arg_at = 0, 0

local function key()
  key_at = key_at + 1
  return KEYS[key_at]
end

local function arg()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end

local function bodies_of(bodies, runs)
  local found = {}
  for first = 1, #runs, 1000 do
    local some = redis.call('HMGET', bodies, unpack(runs, first, math.min(#runs, first + 999)))
    for n = 1, #some do
      found[#found + 1] = some[n]
    end
  end
  return found
end

-- Two sets hold a document's runs, those of its schedule and those of requests: both in order, merged here.
local function oldest(slots, wishes, count)
  local plain = redis.call('ZRANGE', slots, 0, count - 1, 'WITHSCORES')
  local wished = redis.call('ZRANGE', wishes, 0, count - 1, 'WITHSCORES')
  local runs, scores, p, w = {}, {}, 1, 1
  while #runs < count and (plain[p] or wished[w]) do
    local first = wished[w] == nil
    if plain[p] and wished[w] then
      local a, b = tonumber(plain[p + 1]), tonumber(wished[w + 1])
      first = a < b or (a == b and plain[p] < wished[w])
    end
    local from, at = first and plain or wished, first and p or w
    runs[#runs + 1], scores[#scores + 1] = from[at], from[at + 1]
    if first then
      p = p + 2
    else
      w = w + 2
    end
  end
  return runs, scores
end

local function heads_of(bodies, slots, wishes, limit)
  local beyond = redis.call('ZCARD', slots) + redis.call('ZCARD', wishes) - limit
  if beyond <= 0 then
    return {}
  end
  local runs, scores = oldest(slots, wishes, math.min(beyond, HEADS))
  local packed, heads = bodies_of(bodies, runs), {}
  for n = 1, #runs do
    local head = string.match(packed[n] or '', '^[^\n]*') -- without the body
    heads[#heads + 1], heads[#heads + 2], heads[#heads + 3] = runs[n], scores[n], head
  end
  return heads
end

local function newest_end_beyond(marks, limit)
  local beyond = redis.call('ZCARD', marks) - limit
  local newest = false
  if beyond > 0 then
    for _, member in ipairs(redis.call('ZRANGE', marks, 0, beyond - 1)) do
      local until_ = tonumber(string.sub(member, 1, 16)) - AHEAD
      if not newest or until_ > newest then
        newest = until_
      end
    end
  end
  return newest
end

local function of_schedule(member)
  return string.sub(member, 17, 17) == '\31'
end

local function last_marked(ends, last)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', ends, last, '+inf')) do
    local slot = string.match(member, '^[^\31]*\31([^\31]*)')
    if of_schedule(member) and tonumber(slot) <= tonumber(last) then
      return tonumber(last)
    end
  end
  local offset = 0
  while true do
    local some = redis.call('ZREVRANGEBYSCORE', ends, '(' .. last, '-inf', 'LIMIT', offset, 50)
    for _, member in ipairs(some) do
      if of_schedule(member) then
        return tonumber(string.sub(member, 1, 16)) - AHEAD
      end
    end
    if #some < 50 then
      return false
    end
    offset = offset + 50
  end
end

local function last_of(slots, ends, last)
  local run = redis.call('ZREVRANGEBYSCORE', slots, last, '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local slot, marked = tonumber(run[2]), last_marked(ends, last)
  if slot and marked then
    return math.max(slot, marked)
  end
  return slot or marked
end

local function ask()
  local runs = {}
  for n = 1, tonumber(arg()) do
    runs[n] = arg()
  end
  local keep, keep_marks, last = arg(), arg(), arg()
  local document = redis.call('HMGET', key(), 'v', 'b')
  local bodies = (#runs > 0 or keep ~= '') and key()
  local past, heads, newest_end, last_slot = {}, {}, false, false
  if #runs > 0 then
    past = bodies_of(bodies, runs)
  end
  if keep ~= '' or last ~= '' then
    local slots, wishes, marks, ends = key(), key(), key(), key()
    if keep ~= '' then
      heads = heads_of(bodies, slots, wishes, tonumber(keep))
      newest_end = newest_end_beyond(marks, tonumber(keep_marks))
    end
    if last ~= '' then
      last_slot = last_of(slots, ends, last)
    end
  end
  return {document[1], document[2], past, heads, newest_end, last_slot}
end

local time = redis.call('TIME')
local answer = {time[1] * 1000 + math.floor(time[2] / 1000)}
for n = 1, tonumber(arg()) do
  answer[n + 1] = ask()
end
return answer
