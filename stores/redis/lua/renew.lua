-- Row 10. KEYS[1] the record; ARGV[1] the holder, ARGV[2] the term.
local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
if found then
    local waited, second, micro, term, kept, _, _, on_lapse, retention, holder, rest = found:match(TERM)
    if holder == ARGV[1] and #found == rest + FINGERPRINT - 1 then
        if time[1] * 1000000 + time[2] + ARGV[2] > second * 1000000 + micro + term then
            local record = '1 1 ' .. waited .. ' ' .. at .. ' ' .. ARGV[2] .. ' - - - ' .. found:sub(kept)
            put(record, on_lapse == '0' and ARGV[2] + retention)
        end
        return 1
    end
end
return {at, found}
