-- $1 the table of records.
SELECT version FROM {versions} WHERE records = $1
