-- Row 17. ? address, fence.
UPDATE {records}
SET phase = 3, fingerprint = NULL, until = LEAST({now}, 9223372036854775807 - retention) + retention
WHERE address = ? AND fence = ? AND (phase = 4 OR (phase = 1 AND on_lapse = 1 AND until <= {now})) AND readable = 1
