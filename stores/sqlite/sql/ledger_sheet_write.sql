INSERT INTO idempotency_ledger_sheets (scope, name, sheet) VALUES (?1, ?2, ?3)
ON CONFLICT (scope, name) DO UPDATE SET sheet = excluded.sheet
