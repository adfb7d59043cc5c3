-- $1 the schema, $2 the table of records. What its endings are told on: short, and no other table's.
SELECT 'idempotency_' || c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE nspname = $1 AND relname = $2
