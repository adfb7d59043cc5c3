-- $1 address. Flags a record in flight, so that its ending is told. Answers whether it is flagged, which one that
-- somebody is changing may not be, and nothing when it is not in flight.
WITH flagged AS (
    UPDATE {records} SET waited = true
    WHERE address = (
        SELECT r.address FROM {records} AS r
        WHERE r.address = $1 AND r.phase = 1 AND NOT r.waited AND {held}
        FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING 1
)
SELECT r.waited OR EXISTS (SELECT FROM flagged) FROM {records} AS r WHERE r.address = $1 AND r.phase = 1
