INSERT INTO {ledgers} (scope, head, settled, written) VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (scope) DO NOTHING
