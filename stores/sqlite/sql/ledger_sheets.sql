SELECT name, sheet FROM idempotency_ledger_sheets WHERE scope = ?1
