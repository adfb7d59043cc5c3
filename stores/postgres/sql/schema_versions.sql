CREATE TABLE IF NOT EXISTS {versions} (
    records text   NOT NULL PRIMARY KEY, -- the name of a table of records in this schema
    version bigint NOT NULL
)
