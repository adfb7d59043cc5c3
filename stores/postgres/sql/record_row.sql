-- The record r and the time at which it is read, as one value: a column less is a microsecond less.
ROW(
    ROW(r.phase, r.holder, r.fence, r.attempt, r.on_lapse, r.retention),
    ROW(r.fingerprint, r.until, r.gone, r.form, r.media, {outcome}),
    {now}
)
