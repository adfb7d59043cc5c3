-- Row 15: ?1 address, ?2 holder. A record that is in doubt already stays as it is.
UPDATE idempotency_records SET phase = 4, until = NULL
WHERE address = ?1 AND holder = ?2 AND phase = 1 AND readable;
