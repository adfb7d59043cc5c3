-- Which row of the law grants the record r to a claim by the holder $3; NULL where none does.
(
    CASE
        WHEN NOT {readable} THEN NULL
        WHEN r.phase = 1 AND r.holder = $3 AND {same_payload} THEN 1
        WHEN r.phase = 3 AND r.holder = $3 THEN NULL -- row 2
        WHEN r.phase = 3 OR {removable_at} <= {now} THEN 3
        WHEN r.phase = 1 AND r.on_lapse = 0 AND r.until <= {now} AND {same_payload} THEN 8
    END
)
