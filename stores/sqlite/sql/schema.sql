-- A rowid table: a record with its outcome is far longer than the 200 bytes or so up to which SQLite recommends
-- WITHOUT ROWID, and the address, a digest, would scatter those long rows over the whole tree. Here the rows are
-- appended and only the slim index of the primary key is written at random.
CREATE TABLE idempotency_records (
    address     BLOB    NOT NULL PRIMARY KEY,
    phase       INTEGER NOT NULL, -- 1 in flight, 2 completed, 3 released, 4 in doubt
    holder      BLOB    NOT NULL,
    fence       INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    on_lapse    INTEGER NOT NULL, -- 0 take over, 1 hold
    retention   INTEGER NOT NULL, -- microseconds
    fingerprint BLOB,
    until       INTEGER,          -- microseconds since the Unix epoch; 9223372036854775807 is never
    gone        INTEGER,          -- the same

    -- From when on the record may be removed and its key is as good as new; NULL is never.
    removable_at INTEGER GENERATED ALWAYS AS (CASE phase
        WHEN 1 THEN CASE on_lapse WHEN 0 THEN min(until, 9223372036854775807 - retention) + retention END
        WHEN 2 THEN gone
        WHEN 3 THEN until
    END) VIRTUAL,

    -- From when on nobody knows how the operation ended; NULL is never.
    in_doubt_at INTEGER GENERATED ALWAYS AS (CASE phase
        WHEN 1 THEN CASE on_lapse WHEN 1 THEN until END
        WHEN 4 THEN 0
    END) VIRTUAL,

    -- Whether the store can read the record. No statement changes or removes one that it cannot.
    readable INTEGER GENERATED ALWAYS AS (
        length(address) = 32
        AND length(holder) = 16
        AND fence >= 0
        AND attempt BETWEEN 0 AND 4294967295
        AND on_lapse BETWEEN 0 AND 1
        AND retention >= 0
        AND coalesce(CASE WHEN phase IN (1, 2, 4)
            THEN length(fingerprint) = 105 AND substr(fingerprint, 1, 1) = x'02'
            ELSE fingerprint IS NULL END, 0)
        AND coalesce(CASE WHEN phase IN (1, 2, 3) THEN until >= 0 ELSE until IS NULL END, 0)
        AND coalesce(CASE WHEN phase = 2 THEN gone >= 0 ELSE gone IS NULL END, 0)
        AND coalesce(CASE WHEN phase = 2
            THEN form BETWEEN 0 AND 1 AND media BETWEEN 0 AND 65535 AND outcome IS NOT NULL
            ELSE form IS NULL AND media IS NULL AND outcome IS NULL END, 0)
        AND phase BETWEEN 1 AND 4
    ) VIRTUAL CHECK (readable = 1),

    form        INTEGER, -- 0 whole, 1 tombstone
    media       INTEGER,
    outcome     BLOB     -- last: what precedes it is read without it
) STRICT;

CREATE INDEX idempotency_records_removable ON idempotency_records (removable_at)
    WHERE removable_at IS NOT NULL;

CREATE INDEX idempotency_records_in_doubt ON idempotency_records (address, in_doubt_at)
    WHERE in_doubt_at IS NOT NULL;

-- Not PRAGMA user_version: that belongs to the application whose file this is.
CREATE TABLE idempotency_schema (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version  INTEGER NOT NULL
) STRICT;

INSERT INTO idempotency_schema (only_row, version) VALUES (1, 1);
