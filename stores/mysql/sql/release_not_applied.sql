-- Row 13. ? address, holder.
UPDATE {records}
SET phase = 3, fingerprint = NULL, until = LEAST({now}, 9223372036854775807 - retention) + retention
WHERE address = ? AND holder = ? AND phase = 1 AND readable = 1
