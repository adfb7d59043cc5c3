-- What the scripts share that are not run with every operation: a function costs each run that defines it.

-- Writes a record that may be removed when so many microseconds have passed: never, if none are said.
local function put(record, removable)
    if removable and removable < NEVER then
        redis.call('SET', KEYS[1], record, 'PX', math.ceil(removable / 1000) + GRACE)
    else
        redis.call('SET', KEYS[1], record)
    end
end

-- Tells whoever waits for the record that it ended. It is written by then: a user who may not publish ends it all the
-- same, and those who wait find out by looking.
local function tell(waited)
    if waited == '1' then redis.pcall('PUBLISH', KEYS[1]:sub(1, -65) .. 'ended', KEYS[1]:sub(-64)) end
end
