-- Of MariaDB: the record that stands now.
RETURNING {record_columns}, CAST({now} AS SIGNED) AS read_at
