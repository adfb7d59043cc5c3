DELETE FROM {ledgers} WHERE scope IN (
    SELECT scope FROM {ledgers}
    WHERE settled AND written <= clock_timestamp() - $1 * interval '1 microsecond'
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
