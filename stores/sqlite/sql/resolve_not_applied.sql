-- Row 17: ?1 address, ?2 fence, ?3 now.
UPDATE idempotency_records
SET phase = 3, fingerprint = NULL, until = min(?3, 9223372036854775807 - retention) + retention
WHERE address = ?1 AND fence = ?2 AND in_doubt_at <= ?3 AND readable;
