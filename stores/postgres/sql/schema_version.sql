-- $1 the table of records. The sum fails where the version is no number, even if there is none.
SELECT max(version) + 0::bigint FROM {versions} WHERE records = $1
