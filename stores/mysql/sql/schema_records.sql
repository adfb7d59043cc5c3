-- Fails where there is no such table.
SELECT 1 FROM {records} LIMIT 0
