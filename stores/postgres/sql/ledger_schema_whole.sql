-- The table of replyonce 0.1.3, column by column.
CREATE TABLE IF NOT EXISTS {ledgers} (
    scope text PRIMARY KEY,
    state jsonb NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now()
);
