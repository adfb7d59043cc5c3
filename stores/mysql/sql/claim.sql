-- Rows 1 to 9. ? address, holder, on_lapse, retention, fingerprint, lease; {same_payload} twice; lease twice.
-- The variables hold what is worked out once: the time, and the row of the law. Assignments follow one another, so that
-- those behind the first could not tell any more what stood there.
INSERT INTO {records} (address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until)
VALUES (
    ?, 1, ?, GREATEST(1, @idempotency_now := {now}), 1, ?, ?, ?,
    LEAST(?, 9223372036854775807 - CAST(@idempotency_now AS SIGNED)) + CAST(@idempotency_now AS SIGNED)
)
ON DUPLICATE KEY UPDATE
    attempt = CASE (@idempotency_law := CASE
            WHEN (@idempotency_now := {now}) IS NULL OR readable = 0 THEN 0
            WHEN phase = 1 AND holder = VALUES(holder) AND {same_payload} THEN 1
            WHEN phase = 3 AND holder = VALUES(holder) THEN 2
            WHEN phase = 3 OR removable_at <= CAST(@idempotency_now AS SIGNED) THEN 3
            WHEN phase = 2 AND until <= CAST(@idempotency_now AS SIGNED) THEN 4
            WHEN ({same_payload}) = 0 THEN 5
            WHEN phase = 2 THEN 6
            WHEN phase = 4 OR (on_lapse = 1 AND until <= CAST(@idempotency_now AS SIGNED)) THEN 7
            WHEN until <= CAST(@idempotency_now AS SIGNED) THEN 8
            ELSE 9
        END)
        WHEN 3 THEN 1
        WHEN 8 THEN LEAST(attempt, 4294967294) + 1
        ELSE attempt
    END,
    phase = IF(@idempotency_law IN (3, 8), 1, phase),
    holder = IF(@idempotency_law IN (3, 8), VALUES(holder), holder),
    fence = IF(@idempotency_law IN (3, 8), GREATEST(fence + 1, CAST(@idempotency_now AS SIGNED)), fence),
    on_lapse = IF(@idempotency_law IN (3, 8), VALUES(on_lapse), on_lapse),
    retention = IF(@idempotency_law IN (3, 8), VALUES(retention), retention),
    fingerprint = IF(@idempotency_law IN (3, 8), VALUES(fingerprint), fingerprint),
    until = CASE
        WHEN @idempotency_law IN (3, 8) THEN
            LEAST(?, 9223372036854775807 - CAST(@idempotency_now AS SIGNED)) + CAST(@idempotency_now AS SIGNED)
        WHEN @idempotency_law = 1 THEN GREATEST(
            until,
            LEAST(?, 9223372036854775807 - CAST(@idempotency_now AS SIGNED)) + CAST(@idempotency_now AS SIGNED)
        )
        ELSE until
    END,
    gone = IF(@idempotency_law IN (3, 8), NULL, gone),
    form = IF(@idempotency_law IN (3, 8), NULL, form),
    media = IF(@idempotency_law IN (3, 8), NULL, media),
    outcome = IF(@idempotency_law IN (3, 8), NULL, outcome)
