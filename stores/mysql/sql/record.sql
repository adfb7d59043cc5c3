-- ? address.
SELECT {record_columns}, CAST({now} AS SIGNED) AS read_at FROM {records} WHERE address = ?
