-- The time, and of a scope its head, its version, and the fields named; all of them when none is.
local time = redis.call('TIME')
local micros = time[1] .. string.format('%06d', time[2])
if ARGV[1] == 'all' then
  return {micros, redis.call('HGETALL', KEYS[1])}
end
return {micros, redis.call('HMGET', KEYS[1], 's', 'v', unpack(ARGV, 2))}
