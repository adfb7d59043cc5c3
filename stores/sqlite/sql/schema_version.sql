SELECT version FROM idempotency_schema;
