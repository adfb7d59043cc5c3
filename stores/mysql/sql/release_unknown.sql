-- Row 15. ? address, holder. A record that is in doubt already stays as it is.
UPDATE {records} SET phase = 4, until = NULL
WHERE address = ? AND holder = ? AND phase = 1 AND readable = 1
