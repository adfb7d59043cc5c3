-- Row 19, for addresses that were found due. The time is compared here once more.
-- At any other level the gaps between records would be locked too, and new records kept waiting. This one is for the
-- statement that follows alone. A small table would be read from end to end, other records' locks awaited.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
DELETE records FROM {records} AS records FORCE INDEX (PRIMARY)
WHERE address IN ({addresses}) AND removable_at <= {now} AND readable = 1
