-- Row 13: $1 address, $2 holder. The clock: see renew.sql.
UPDATE {records} AS r SET
    phase = 3, fingerprint = NULL,
    until = least(now, 9223372036854775807 - r.retention) + r.retention,
    due = least(r.due, least(now, 9223372036854775807 - r.retention) + r.retention)
FROM (
    SELECT place, {now} AS now
    FROM (
        SELECT r.ctid AS place FROM {records} AS r
        WHERE r.address = $1 AND r.holder = $2 AND r.phase = 1 AND {held}
        FOR NO KEY UPDATE
    ) AS found
) AS locked
WHERE r.ctid = place
RETURNING waited
