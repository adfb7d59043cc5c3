-- ?1 the address to begin after, ?2 how many.
SELECT address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, gone, form, media, outcome
FROM idempotency_records
WHERE address > coalesce(?1, x'')
ORDER BY address
LIMIT ?2;
