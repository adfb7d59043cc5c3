SELECT scope FROM idempotency_ledgers WHERE settled = 1 AND written <= ?1 ORDER BY written LIMIT ?2
