-- Reads the record at KEYS[1] and the clock at one moment. Writes nothing.
local time = redis.call('TIME')
return {time[1] .. '+' .. time[2], redis.call('GET', KEYS[1])}
