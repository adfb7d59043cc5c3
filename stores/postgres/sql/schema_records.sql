-- No generated column, no CHECK: the server reads their text anew in each statement that writes, which made a claim and
-- a completion more than twice as dear. The statements tell themselves what they can read: see readable.sql.
--
-- What an update changes stands last, and half of each page is left free, so that the versions of a record stay on
-- its page, the log has only what changed, and no index is written to.
CREATE TABLE {records} (
    address     bytea    NOT NULL,
    holder      bytea    NOT NULL,
    fingerprint bytea,
    fence       bigint   NOT NULL,
    attempt     bigint   NOT NULL,
    retention   bigint   NOT NULL,               -- microseconds
    -- When a purge has to look at the record: at the latest when it may be removed, and more than 73,000 years from now
    -- while nothing may remove it. An update of an indexed column writes to every index, so this one is left
    -- as it is wherever that comes out right. Only a purge puts it off, to what it has become since.
    due         bigint   NOT NULL,
    on_lapse    smallint NOT NULL,               -- 0 take over, 1 hold
    phase       smallint NOT NULL,               -- 1 in flight, 2 completed, 3 released, 4 in doubt
    waited      boolean  NOT NULL DEFAULT false, -- whether somebody wants to be told of its end
    until       bigint,                          -- microseconds since the Unix epoch
    gone        bigint,                          -- the same
    media       integer,
    form        smallint,                        -- 0 whole, 1 tombstone
    outcome     bytea,
    CONSTRAINT {records_key} PRIMARY KEY (address)
) WITH (
    fillfactor = 50,
    -- Purged records leave room for new ones before the table has to grow.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX {records_due} ON {records} (due);
