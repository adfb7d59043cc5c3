-- $1 the schema, $2 the table of records, $3 the table of versions. Whether the schema is there, and each table.
SELECT
    EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
    EXISTS (SELECT FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = $1 AND relname = $2),
    EXISTS (SELECT FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = $1 AND relname = $3)
