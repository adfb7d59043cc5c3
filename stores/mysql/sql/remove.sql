-- Row 19, for some addresses that were found due; {addresses} is a list of ?. The time is compared here once more, and
-- no index can be entered with what SYSDATE says: the records are locked by their addresses, and nothing beside them.
DELETE FROM {records} WHERE address IN ({addresses}) AND removable_at <= {now} AND readable = 1
