-- Row 10. ? term twice, address, holder.
UPDATE {records} SET until = GREATEST(until, LEAST({now}, 9223372036854775807 - ?) + ?)
WHERE address = ? AND holder = ? AND phase = 1 AND readable = 1
