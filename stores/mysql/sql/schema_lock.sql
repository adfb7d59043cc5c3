-- Such locks are the whole server's: the database is part of its name. ? seconds.
SELECT GET_LOCK(CONCAT('idempotency_schema.', LEFT(DATABASE(), 40)), ?)
