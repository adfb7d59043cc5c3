SELECT count(*) FROM sqlite_schema
WHERE type IN ('table', 'view') AND name IN ('idempotency_records', 'idempotency_schema');
