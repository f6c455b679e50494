-- Changes of documents, one after the other, each wholly or not at all (R40).
--
-- TIME is read once, first: the script holds the server until its end, so nothing slips in and no change that
-- waited beats its deadline. Work is bounded by what the change brings, and a trim by the marks that it takes.
--
-- ARGV: the channel of hints, how many changes, then for each:
--   how many keys, how many arguments follow,
--   what (put, delete, note), version, deadline or '', '1' for a hint, name,
--   put: version after it, body, records (run, slot, packed)..., runs to forget..., trim or ''
--   put, note: marks (slot, until, request, after or '', why, whom, count, at, by)...
-- where ... stands for a count and as many of what is named. KEYS: for each change only those that it touches.
-- Answers with the time in milliseconds and one number per change: 0 done, 1 raced, 2 expired.

local SEPARATOR = '\31'
local AHEAD = 1e15 -- see documents.py: what makes any `until` a number of 16 digits

local key_at, arg_at = 0, 0

local function key()
  key_at = key_at + 1
  return KEYS[key_at]
end

local function arg()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end

local function place_of(run, slots, wishes)
  return string.find(run, '#', 1, true) and wishes or slots
end

-- Marks: a member holds all that a mark says, and stands in two sets, by its slot and by its end.

local function parsed(member)
  local parts = {}
  for part in string.gmatch(string.sub(member, 17) .. SEPARATOR, '([^\31]*)\31') do
    parts[#parts + 1] = part
  end
  local request, slot, count, at, why, whom, by = unpack(parts)
  return {request = request, slot = tonumber(slot), count = count, at = at, why = why, whom = whom, by = by}
end

local function keep(marks, ends, until_, mark)
  local said = {until_ .. mark.request, string.format('%.0f', mark.slot), mark.count, mark.at, mark.why, mark.whom, mark.by}
  local member = table.concat(said, SEPARATOR)
  redis.call('ZADD', marks, string.format('%.0f', mark.slot), member)
  redis.call('ZADD', ends, string.format('%.0f', tonumber(until_) - AHEAD), member)
end

local function covered(ends, slot, request)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', ends, string.format('%.0f', slot), '+inf')) do
    local known = parsed(member)
    if known.request == request and known.slot <= slot then
      return true
    end
  end
  return false
end

local function neighbour(ends, after, mark)
  local found, found_member
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', ends, after, after)) do
    local known = parsed(member)
    if known.request == '' and known.why == mark.why and known.whom == mark.whom then
      if not found or known.slot > found.slot then
        found, found_member = known, member
      end
    end
  end
  return found, found_member
end

local function note(marks, ends)
  local mark = {slot = tonumber(arg())}
  local until_ = arg()
  mark.request = arg()
  local after = arg()
  mark.why, mark.whom, mark.count, mark.at, mark.by = arg(), arg(), arg(), arg(), arg()
  if covered(ends, mark.slot, mark.request) then
    return
  end
  if after ~= '' and mark.request == '' then
    local known, member = neighbour(ends, after, mark)
    if known then
      redis.call('ZREM', marks, member)
      redis.call('ZREM', ends, member)
      known.count, known.at = string.format('%.0f', known.count + mark.count), mark.at
      keep(marks, ends, until_, known)
      return
    end
  end
  keep(marks, ends, until_, mark)
end

local function trim(marks, ends, slot)
  while true do
    local gone = redis.call('ZRANGEBYSCORE', ends, '-inf', slot, 'LIMIT', 0, 500)
    if #gone == 0 then
      return
    end
    redis.call('ZREM', marks, unpack(gone))
    redis.call('ZREM', ends, unpack(gone))
  end
end

-- Changes.

local function history(records, forgotten)
  local bodies, slots, wishes = key(), key(), key()
  for _, record in ipairs(records) do
    redis.call('HSET', bodies, record[1], record[3])
    redis.call('ZADD', place_of(record[1], slots, wishes), record[2], record[1])
  end
  for _, run in ipairs(forgotten) do
    redis.call('HDEL', bodies, run)
    redis.call('ZREM', place_of(run, slots, wishes), run)
  end
end

local function put(document, version, name)
  local index = version == '0' and key()
  local next_version, body = arg(), arg()
  local records, forgotten = {}, {}
  for n = 1, tonumber(arg()) do
    records[n] = {arg(), arg(), arg()}
  end
  for n = 1, tonumber(arg()) do
    forgotten[n] = arg()
  end
  -- The document comes last: should a key hold what is not ours, the script ends before the version moves.
  if #records + #forgotten > 0 then
    history(records, forgotten)
  end
  local trim_to, count = arg(), tonumber(arg())
  if trim_to ~= '' or count > 0 then
    local marks, ends = key(), key()
    if trim_to ~= '' then
      trim(marks, ends, trim_to)
    end
    for _ = 1, count do
      note(marks, ends)
    end
  end
  if index then
    redis.call('ZADD', index, 0, name)
  end
  redis.call('HSET', document, 'v', next_version, 'b', body)
end

local function delete(document, name)
  redis.call('ZREM', key(), name)
  redis.call('DEL', document, key(), key(), key(), key(), key())
end

local function change(now)
  local what, version, deadline, hinted, name = arg(), arg(), arg(), arg(), arg()
  if what == 'note' then
    local count = tonumber(arg())
    if count > 0 then
      local marks, ends = key(), key()
      for _ = 1, count do
        note(marks, ends)
      end
    end
  else
    local document = key()
    if (redis.call('HGET', document, 'v') or '0') ~= version then
      return 1
    end
    if deadline ~= '' and now > tonumber(deadline) then
      return 2
    end
    if what == 'delete' then
      delete(document, name)
    else
      put(document, version, name)
    end
  end
  return 0, hinted == '1' and name
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local channel = arg()
local answer, hinted = {now}, {}
for n = 1, tonumber(arg()) do
  local keys, args = tonumber(arg()), tonumber(arg())
  local next_key, next_arg = key_at + keys, arg_at + args
  local outcome, name = change(now)
  answer[n + 1] = outcome
  if name then
    hinted[#hinted + 1] = name
  end
  key_at, arg_at = next_key, next_arg
end
if #hinted > 0 then
  -- A hint may be lost: where publishing is not allowed, the changes stand all the same.
  redis.pcall('PUBLISH', channel, cjson.encode(hinted))
end
return answer
