-- Row 11: $1 address, $2 holder, $3 replay, $4 replay and reject, $5 form, $6 media, $7 outcome. The clock: see renew.sql.
UPDATE {records} AS r SET
    phase = 2, until = now + $3, gone = now + $4, due = least(r.due, now + $4), form = $5, media = $6, outcome = $7
FROM (
    SELECT place, {now} AS now
    FROM (
        SELECT r.ctid AS place FROM {records} AS r
        WHERE r.address = $1 AND r.holder = $2 AND {held}
        FOR NO KEY UPDATE
    ) AS found
) AS locked
WHERE r.ctid = place
RETURNING waited
