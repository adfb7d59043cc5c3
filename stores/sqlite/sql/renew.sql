-- Row 10: ?1 address, ?2 holder, ?3 now + term.
UPDATE idempotency_records SET until = max(until, ?3)
WHERE address = ?1 AND holder = ?2 AND phase = 1 AND readable;
