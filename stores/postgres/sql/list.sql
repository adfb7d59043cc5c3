-- $1 the address to begin after, $2 how many.
SELECT r.address, {record_row} FROM {records} AS r
WHERE r.address > $1
ORDER BY r.address
LIMIT $2
