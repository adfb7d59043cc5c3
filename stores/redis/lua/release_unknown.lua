-- Row 15. KEYS[1] the record; ARGV[1] the holder. A record that is in doubt already stays as it is.
local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
if found then
    local waited, kept, holder, rest = found:match(IN_FLIGHT)
    if holder == ARGV[1] and #found == rest + FINGERPRINT - 1 then
        put('1 4 0 ' .. at .. ' - - - - ' .. found:sub(kept))
        tell(waited)
        return 1
    end
end
return {at, found}
