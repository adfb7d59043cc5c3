-- Row 13: ?1 address, ?2 holder, ?3 now.
UPDATE idempotency_records
SET phase = 3, fingerprint = NULL, until = min(?3, 9223372036854775807 - retention) + retention
WHERE address = ?1 AND holder = ?2 AND phase = 1 AND readable;
