-- From when on the readable record r may be removed and its key is as good as new; NULL is never.
(
    CASE r.phase
        WHEN 1 THEN CASE r.on_lapse WHEN 0 THEN least(r.until, 9223372036854775807 - r.retention) + r.retention END
        WHEN 2 THEN r.gone
        WHEN 3 THEN r.until
    END
)
