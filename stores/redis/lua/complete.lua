-- Row 11. KEYS[1] the record; ARGV[1] the holder, ARGV[2] the words from the replay to the media, ARGV[3] the outcome,
-- ARGV[4] the milliseconds after which a server may remove the record, or nothing.
local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
if found then
    local waited, kept, holder, rest = found:match(IN_FLIGHT)
    if not waited then
        waited, kept, holder, rest = found:match(IN_DOUBT)
    end
    if holder == ARGV[1] and #found == rest + FINGERPRINT - 1 then
        local record = '1 2 0 ' .. at .. ARGV[2] .. found:sub(kept) .. ARGV[3]
        if ARGV[4] ~= '' then
            redis.call('SET', KEYS[1], record, 'PX', ARGV[4])
        else
            redis.call('SET', KEYS[1], record)
        end
        if waited == '1' then redis.pcall('PUBLISH', KEYS[1]:sub(1, -65) .. 'ended', KEYS[1]:sub(-64)) end
        return 1
    end
end
return {at, found}
