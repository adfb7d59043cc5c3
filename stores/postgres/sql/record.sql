-- $1 address.
SELECT {record_row} FROM {records} AS r WHERE r.address = $1
