SELECT head FROM idempotency_ledgers WHERE scope = ?1
