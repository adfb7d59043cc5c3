-- Row 16. ? nobody's holder, replay twice, then_reject twice, form, media, outcome, address, fence.
UPDATE {records} SET
    phase = 2,
    holder = ?,
    until = (@idempotency_until := LEAST({now}, 9223372036854775807 - ?) + ?),
    gone = LEAST(CAST(@idempotency_until AS SIGNED), 9223372036854775807 - ?) + ?,
    form = ?,
    media = ?,
    outcome = COALESCE(?, x'')
WHERE address = ? AND fence = ? AND (phase = 4 OR (phase = 1 AND on_lapse = 1 AND until <= {now})) AND readable = 1
