-- Marks the record at KEYS[1] as waited for, so that its ending is told. 1 if it is in flight and its lease lasts, else 0:
-- then nobody needs to wait, or nobody can tell.
local time = redis.call('TIME')
local found = redis.call('GET', KEYS[1])
local waited, second, micro, term, _, _, _, _, _, _, rest = (found or ''):match(TERM)
if not waited or #found ~= rest + FINGERPRINT - 1 then return 0 end
if second * 1000000 + micro + term <= time[1] * 1000000 + time[2] then return 0 end
if waited == '0' then redis.call('SETRANGE', KEYS[1], 4, '1') end
return 1
