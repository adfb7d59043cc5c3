-- Addresses are compared as bytes, whatever the database's collation: no column here holds text.
CREATE TABLE IF NOT EXISTS {records} (
    address     BINARY(32)     NOT NULL PRIMARY KEY,
    phase       TINYINT        NOT NULL, -- 1 in flight, 2 completed, 3 released, 4 in doubt
    holder      BINARY(16)     NOT NULL,
    fence       BIGINT         NOT NULL,
    attempt     BIGINT         NOT NULL,
    on_lapse    TINYINT        NOT NULL, -- 0 take over, 1 hold
    retention   BIGINT         NOT NULL, -- microseconds
    fingerprint VARBINARY(105),
    until       BIGINT,                  -- microseconds since the Unix epoch; 9223372036854775807 is never
    gone        BIGINT,                  -- the same
    form        TINYINT,                 -- 0 whole, 1 tombstone
    media       INT,
    outcome     LONGBLOB,

    -- Whether the store can read the record. No statement changes or removes one that it cannot. Stored, since a claim
    -- reads it in an update of the row it met, where MariaDB does not work virtual columns out.
    readable    TINYINT        AS (
        fence >= 0
        AND attempt BETWEEN 0 AND 4294967295
        AND on_lapse BETWEEN 0 AND 1
        AND retention >= 0
        AND COALESCE(CASE WHEN phase IN (1, 2, 4)
            THEN LENGTH(fingerprint) = 105 AND SUBSTR(fingerprint, 1, 1) = x'02'
            ELSE fingerprint IS NULL END, 0)
        AND COALESCE(CASE WHEN phase IN (1, 2, 3) THEN until >= 0 ELSE until IS NULL END, 0)
        AND COALESCE(CASE WHEN phase = 2 THEN gone >= 0 ELSE gone IS NULL END, 0)
        AND COALESCE(CASE WHEN phase = 2
            THEN form BETWEEN 0 AND 1 AND media BETWEEN 0 AND 65535 AND outcome IS NOT NULL
            ELSE form IS NULL AND media IS NULL AND outcome IS NULL END, 0)
        AND phase BETWEEN 1 AND 4
    ) STORED,

    -- From when on the record may be removed and its key is as good as new; NULL is never, and what cannot be read.
    removable_at BIGINT        AS (CASE WHEN readable = 1 THEN CASE phase
        WHEN 1 THEN CASE on_lapse WHEN 0 THEN LEAST(until, 9223372036854775807 - retention) + retention END
        WHEN 2 THEN gone
        WHEN 3 THEN until
    END END) STORED,

    INDEX removable (removable_at, address),
    CHECK (readable = 1)
) ENGINE = InnoDB
