-- ?1 the address to begin after, ?2 how many, ?3 now when the caller has read a clock.
SELECT address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone, form, media, outcome
FROM idempotency_records INDEXED BY idempotency_records_in_doubt
WHERE address > coalesce(?1, x'')
  AND in_doubt_at <= coalesce(?3, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000)
ORDER BY address
LIMIT ?2;
