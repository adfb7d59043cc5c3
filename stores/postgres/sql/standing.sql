-- $1 address. The record without its outcome, which may be long and no ending depends on.
SELECT {record_row} FROM {records} AS r WHERE r.address = $1
