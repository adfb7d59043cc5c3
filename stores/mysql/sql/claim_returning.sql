-- Of MariaDB: the record that stands now.
RETURNING {record_columns}, {now} AS read_at
