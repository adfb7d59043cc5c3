-- Whether nobody knows how the operation of the readable record r ended.
(r.phase = 4 OR (r.phase = 1 AND r.on_lapse = 1 AND r.until <= {now}))
