-- Row 10: $1 address, $2 holder, $3 term.
--
-- The clock is read once the record is locked: an update alone would read it before it waits for who only locked the
-- record. One that was changed meanwhile is not found where it was, and the statement writes nothing.
UPDATE {records} AS r SET until = greatest(r.until, now + $3)
FROM (
    SELECT place, {now} AS now
    FROM (
        SELECT r.ctid AS place FROM {records} AS r
        WHERE r.address = $1 AND r.holder = $2 AND r.phase = 1 AND {held}
        FOR NO KEY UPDATE
    ) AS found
) AS locked
WHERE r.ctid = place
RETURNING false
