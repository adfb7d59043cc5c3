-- Whether the record r, whose address and holder are known, is in flight or in doubt and the store can read it: what
-- readable.sql says of these phases in fewer words, since it is asked at every ending.
(
    r.phase IN (1, 4)
    AND (r.phase = 4) = (r.until IS NULL)
    AND least(r.fence, r.attempt, r.retention, r.until) >= 0
    AND r.attempt <= 4294967295
    AND r.on_lapse IN (0, 1)
    AND num_nonnulls(r.gone, r.form, r.media, r.outcome) = 0
    AND octet_length(r.fingerprint) = 105 AND get_byte(r.fingerprint, 0) = 2
)
