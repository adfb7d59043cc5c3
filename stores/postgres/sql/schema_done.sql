-- $1 the table of records, $2 the version. That of a table which somebody dropped still stands there.
INSERT INTO {versions} (records, version) VALUES ($1, $2)
ON CONFLICT (records) DO UPDATE SET version = excluded.version
