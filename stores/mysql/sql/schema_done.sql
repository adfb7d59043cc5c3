-- ? version, the table's name.
UPDATE idempotency_schema SET version = ? WHERE records = ?
