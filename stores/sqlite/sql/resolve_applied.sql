-- Row 16: ?1 address, ?2 fence, ?3 now, ?4 until, ?5 gone, ?6 form, ?7 media, ?8 outcome, ?9 nobody's holder.
UPDATE idempotency_records SET phase = 2, holder = ?9, until = ?4, gone = ?5, form = ?6, media = ?7, outcome = ?8
WHERE address = ?1 AND fence = ?2 AND in_doubt_at <= ?3 AND readable;
