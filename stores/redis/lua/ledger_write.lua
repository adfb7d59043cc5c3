-- Writes a scope, if it still is of the version that was read: version, head, milliseconds to live (0 for ever), how many
-- fields are put, each with its text, and the fields that go.
local version = redis.call('HGET', KEYS[1], 'v') or '0'
if version ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 's', ARGV[2], 'v', string.format('%.0f', tonumber(version) + 1))
local puts = tonumber(ARGV[4])
for i = 5, 4 + 2 * puts, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
for i = 5 + 2 * puts, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
if ARGV[3] == '0' then
  redis.call('PERSIST', KEYS[1])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
