-- What row 19 may remove, as far as a look without locks can tell. ? how many.
-- Compared with the statement's start, which is one number that the index can be entered with.
SELECT address FROM {records} FORCE INDEX (removable)
WHERE removable_at <= TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))
ORDER BY removable_at
LIMIT ?
