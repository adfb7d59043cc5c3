-- Row 13. KEYS[1] the record; ARGV[1] the holder.
local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
if found then
    local waited, _, _, _, kept, _, _, _, retention, holder, rest = found:match(TERM)
    if holder == ARGV[1] and #found == rest + FINGERPRINT - 1 then
        put('1 3 0 ' .. at .. ' ' .. retention .. ' - - - ' .. found:sub(kept, rest - 2), retention + 0)
        tell(waited)
        return 1
    end
end
return {at, found}
