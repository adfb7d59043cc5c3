-- Row 11: ?1 address, ?2 holder, ?3 until, ?4 gone, ?5 form, ?6 media, ?7 outcome.
UPDATE idempotency_records SET phase = 2, until = ?3, gone = ?4, form = ?5, media = ?6, outcome = ?7
WHERE address = ?1 AND holder = ?2 AND phase IN (1, 4) AND readable;
