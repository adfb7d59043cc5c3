-- $1 address, $2 holder. Locks the record until the transaction ends, so that nobody takes it over meanwhile.
SELECT true FROM {records} AS r
WHERE r.address = $1 AND r.holder = $2 AND r.phase = 1 AND {held}
FOR NO KEY UPDATE
