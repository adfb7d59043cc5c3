INSERT INTO {ledgers} (scope, state) VALUES ($1, $2::jsonb) ON CONFLICT (scope) DO NOTHING
