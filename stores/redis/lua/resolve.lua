-- Rows 16 and 17. KEYS[1] the record; ARGV[1] the fence. If it was applied, ARGV[2] nobody's holder, ARGV[3] the words
-- from the replay to the media, ARGV[4] the outcome, ARGV[5] the microseconds after which the record may be removed.
local DOUBT = '^1 4 ([01]) %d+%+%d+ %- %- %- %- ()%d+ (%d+)%+(%d+) [01] (%d+) ................\2()'

local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
if found then
    local waited, kept, second, micro, retention, rest = found:match(DOUBT)
    if not waited then
        local began, began_micro, term, on_lapse, _
        waited, began, began_micro, term, kept, second, micro, on_lapse, retention, _, rest = found:match(TERM)
        local lapsed = waited and began * 1000000 + began_micro + term <= time[1] * 1000000 + time[2]
        if on_lapse ~= '1' or not lapsed then return {at, found} end
    end
    local fence = second * 1000000 + micro
    if fence < NEVER and fence == tonumber(ARGV[1]) and #found == rest + FINGERPRINT - 1 then
        if ARGV[2] then
            local record = found:sub(kept, rest - 18) .. ARGV[2] .. found:sub(rest - 1) .. ARGV[4]
            put('1 2 0 ' .. at .. ARGV[3] .. record, ARGV[5] + 0)
        else
            put('1 3 0 ' .. at .. ' ' .. retention .. ' - - - ' .. found:sub(kept, rest - 2), retention + 0)
        end
        tell(waited)
        return 1
    end
end
return {at, found}
