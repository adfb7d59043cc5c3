INSERT INTO idempotency_ledgers (scope, head, settled, written) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (scope) DO UPDATE SET head = excluded.head, settled = excluded.settled, written = excluded.written
