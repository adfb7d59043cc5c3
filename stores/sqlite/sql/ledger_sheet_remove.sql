DELETE FROM idempotency_ledger_sheets WHERE scope = ?1 AND name = ?2
