-- One row for each table of records in this database. Version 0 is a table in the making.
CREATE TABLE IF NOT EXISTS idempotency_schema (
    records VARBINARY(64) NOT NULL PRIMARY KEY,
    version BIGINT        NOT NULL
) ENGINE = InnoDB
