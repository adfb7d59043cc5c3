-- Row 19: $1 how many. Looks at the records that are due and that nobody is changing; removes those that are over and
-- writes of the others when to look again. Answers how many it looked at, and how many it removed.
WITH looked_at AS (
    SELECT r.ctid AS place, coalesce({removable_at} <= {now}, false) AS over
    FROM {records} AS r
    WHERE r.due <= (SELECT {now}) AND {readable}
    ORDER BY r.due
    LIMIT $1
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM {records} WHERE ctid = ANY (ARRAY(SELECT place FROM looked_at WHERE over)) RETURNING 1
), put_off AS (
    UPDATE {records} AS r SET due = coalesce({removable_at}, {never})
    WHERE r.ctid = ANY (ARRAY(SELECT place FROM looked_at WHERE NOT over))
)
SELECT (SELECT count(*) FROM looked_at), (SELECT count(*) FROM removed)
