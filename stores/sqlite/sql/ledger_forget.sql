DELETE FROM idempotency_ledgers WHERE scope = ?1
