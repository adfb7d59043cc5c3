-- $1 the address to begin after, $2 how many. What is in doubt, or will be if it lapses, is due never.
SELECT r.address, {record_row} FROM {records} AS r
WHERE r.due >= {never} AND r.address > $1 AND {in_doubt}
ORDER BY r.address
LIMIT $2
