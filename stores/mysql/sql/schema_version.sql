-- ? the table's name.
SELECT version FROM idempotency_schema WHERE records = ?
