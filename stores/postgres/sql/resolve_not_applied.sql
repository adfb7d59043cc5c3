-- Row 17: $1 address, $2 fence. The clock: see renew.sql.
UPDATE {records} AS r SET
    phase = 3, fingerprint = NULL,
    until = least(now, 9223372036854775807 - r.retention) + r.retention,
    due = least(now, 9223372036854775807 - r.retention) + r.retention
FROM (
    SELECT place, {now} AS now
    FROM (
        SELECT r.ctid AS place FROM {records} AS r
        WHERE r.address = $1 AND r.fence = $2 AND {readable} AND {in_doubt}
        FOR NO KEY UPDATE
    ) AS found
) AS locked
WHERE r.ctid = place
RETURNING waited
