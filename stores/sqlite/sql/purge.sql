-- Row 19: ?1 now, ?2 how many.
DELETE FROM idempotency_records
WHERE rowid IN (
    SELECT rowid FROM idempotency_records INDEXED BY idempotency_records_removable
    WHERE removable_at <= ?1 AND readable
    LIMIT ?2
);
