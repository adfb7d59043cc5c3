-- ? the address to begin after, how many.
SELECT {record_columns} FROM {records} WHERE address > COALESCE(?, x'') ORDER BY address LIMIT ?
