-- Rows 1 to 9. KEYS[1] the record; ARGV[1] the words from the lease to the attempt, ARGV[2] those from on_lapse on and
-- the bytes, ARGV[3] the milliseconds after which a server may remove the grant or nothing, ARGV[4] the digest of the
-- payload under the previous secret if there is one.
local LEASE = '^1 1 ([01]) (%d+)%+(%d+) (%d+) %- %- %- ()(%d+) (%d+)%+(%d+) ([01]) (%d+) (................)\2(................................)()'
local COMPLETED = '^1 2 [01] (%d+)%+(%d+) (%d+) (%d+) [01] %x%x%x%x %d+ (%d+)%+(%d+) [01] %d+ ................\2()'
local RELEASED = '^1 3 [01] %d+%+%d+ %d+ %- %- %- %d+ (%d+)%+(%d+) [01] %d+ (................)$'

local time = redis.call('TIME')
local at = time[1] .. '+' .. time[2]
local found = redis.call('GET', KEYS[1])
local waited, attempt, fence = '0', '1', at
if found then
    local refused = {at, found}
    local now = time[1] * 1000000 + time[2]
    local mine, digest = ARGV[2]:sub(-121, -106), ARGV[2]:sub(-104, -73)
    local seconds, micros
    local phase = found:sub(1, 4)
    if phase == '1 1 ' then
        local still, began, began_micros, lease, kept, nth, s, us, on_lapse, retention, holder, asked, rest =
            found:match(LEASE)
        if not still or #found ~= rest + PARTS - 1 then return refused end
        local same = asked == digest or asked == ARGV[4]
        local ends = began * 1000000 + began_micros + lease
        if same and holder == mine then -- row 1
            local wanted = ARGV[1]:match('%d+')
            if now + wanted > ends then
                local record = '1 1 ' .. still .. ' ' .. at .. ARGV[1] .. found:sub(kept)
                if on_lapse == '0' and wanted + retention < NEVER then
                    local removable = math.ceil((wanted + retention) / 1000) + GRACE
                    redis.call('SET', KEYS[1], record, 'PX', removable)
                else
                    redis.call('SET', KEYS[1], record)
                end
            end
            return nth .. ' ' .. s .. '+' .. us
        end
        if on_lapse == '1' or ends > now then return refused end
        if ends + retention > now then -- row 8, unless the payload is another
            if not same then return refused end
            attempt = math.min(nth + 1, 4294967295)
        end
        waited, seconds, micros = still, s, us
    elseif phase == '1 3 ' then
        local holder
        seconds, micros, holder = found:match(RELEASED)
        if not seconds or holder == mine then return refused end -- row 2
    elseif phase == '1 2 ' then
        local began, began_micros, replay, reject, s, us, rest = found:match(COMPLETED)
        if not began or #found < rest + FINGERPRINT - 1
            or began * 1000000 + began_micros + replay + reject > now then
            return refused
        end
        seconds, micros = s, us
    else
        return refused
    end
    local last = seconds * 1000000 + micros
    if last >= NEVER then return refused end
    if last >= now then fence = seconds .. '+' .. (micros + 1) end
end
local record = '1 1 ' .. waited .. ' ' .. at .. ARGV[1] .. attempt .. ' ' .. fence .. ARGV[2]
if ARGV[3] ~= '' then
    redis.call('SET', KEYS[1], record, 'PX', ARGV[3])
else
    redis.call('SET', KEYS[1], record)
end
return attempt .. ' ' .. fence
