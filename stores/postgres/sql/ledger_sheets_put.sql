INSERT INTO {sheets} (scope, name, sheet)
SELECT $1, put.name, put.sheet FROM unnest($2::text[], $3::text[]) AS put (name, sheet)
ON CONFLICT (scope, name) DO UPDATE SET sheet = excluded.sheet
