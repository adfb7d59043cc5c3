CREATE TABLE IF NOT EXISTS {ledgers} (
    scope text PRIMARY KEY,
    head text NOT NULL,
    settled boolean NOT NULL,
    written timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS {sheets} (
    scope text NOT NULL REFERENCES {ledgers} ON DELETE CASCADE,
    name text NOT NULL,
    sheet text NOT NULL,
    PRIMARY KEY (scope, name)
);
