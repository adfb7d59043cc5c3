-- ?1 address, ?2 now when the caller has read a clock.
SELECT address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone, form, media, outcome,
       coalesce(?2, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000) AS now
FROM idempotency_records
WHERE address = ?1;
