-- ? the table's name.
INSERT INTO idempotency_schema (records, version) VALUES (?, 0) ON DUPLICATE KEY UPDATE version = 0
