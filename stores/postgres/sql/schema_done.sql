-- $1 the table of records, $2 the version.
INSERT INTO {versions} (records, version) VALUES ($1, $2)
