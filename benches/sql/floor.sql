DROP TABLE IF EXISTS idempotency_floor;
CREATE TABLE idempotency_floor (address bytea PRIMARY KEY, claim bytea NOT NULL, outcome bytea);
