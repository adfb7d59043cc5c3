-- Row 11. ? replay twice, then_reject twice, form, media, outcome, address, holder.
UPDATE {records} SET
    phase = 2,
    until = (@idempotency_until := LEAST({now}, 9223372036854775807 - ?) + ?),
    gone = LEAST(CAST(@idempotency_until AS SIGNED), 9223372036854775807 - ?) + ?,
    form = ?,
    media = ?,
    outcome = COALESCE(?, x'') -- a sql_mode of MariaDB takes empty bytes for NULL
WHERE address = ? AND holder = ? AND phase IN (1, 4) AND readable = 1
