-- ? address.
SELECT {record_columns}, {now} AS read_at FROM {records} WHERE address = ?
