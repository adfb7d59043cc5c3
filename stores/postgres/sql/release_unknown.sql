-- Row 15: $1 address, $2 holder. A record that is in doubt already stays as it is.
UPDATE {records} AS r SET phase = 4, until = NULL, due = {never}
WHERE r.address = $1 AND r.holder = $2 AND r.phase = 1 AND {held}
RETURNING waited
