-- $1 the schema. Until the transaction ends nobody else makes tables in it.
SELECT pg_advisory_xact_lock(hashtextextended('idempotency ' || $1, 0))
