CREATE TABLE IF NOT EXISTS idempotency_ledgers (
    scope TEXT NOT NULL PRIMARY KEY,
    head TEXT NOT NULL,
    settled INTEGER NOT NULL,
    written INTEGER NOT NULL -- microseconds since the Unix epoch
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS idempotency_ledger_sheets (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    sheet TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS idempotency_ledgers_idle ON idempotency_ledgers (written) WHERE settled = 1;
