-- Whether the store can read the record r. No statement changes or removes one that it cannot.
(
    coalesce(
        octet_length(r.address) = 32
        AND octet_length(r.holder) = 16
        AND least(r.fence, r.attempt, r.retention, r.until, r.gone) >= 0
        AND r.attempt <= 4294967295
        AND r.on_lapse IN (0, 1)
        AND CASE r.phase
            WHEN 1 THEN r.until IS NOT NULL
                AND num_nonnulls(r.gone, r.form, r.media, r.outcome) = 0
            WHEN 2 THEN num_nulls(r.until, r.gone, r.form, r.media, r.outcome) = 0
                AND r.form IN (0, 1) AND r.media BETWEEN 0 AND 65535
            WHEN 3 THEN r.until IS NOT NULL
                AND num_nonnulls(r.gone, r.form, r.media, r.outcome) = 0
            WHEN 4 THEN num_nonnulls(r.until, r.gone, r.form, r.media, r.outcome) = 0
            ELSE false
        END
        AND CASE r.phase
            WHEN 3 THEN r.fingerprint IS NULL
            ELSE octet_length(r.fingerprint) = 105 AND get_byte(r.fingerprint, 0) = 2
        END,
        false
    )
)
