-- What is pending or in doubt keeps its scope.
DELETE FROM {ledgers} WHERE scope IN (
    SELECT scope FROM {ledgers}
    WHERE updated_at <= clock_timestamp() - $1 * interval '1 microsecond'
        AND NOT EXISTS (
            SELECT FROM jsonb_each(CASE jsonb_typeof(state -> 'effects') WHEN 'object' THEN state -> 'effects' ELSE '{}' END)
                AS effect
            WHERE effect.value ->> 'status' IS NULL OR effect.value ->> 'status' NOT IN ('committed', 'failed')
        )
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
