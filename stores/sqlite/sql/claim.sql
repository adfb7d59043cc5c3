-- Rows 1, 3 and 8: ?1 address, ?2 fingerprint, ?3 holder, ?4 on_lapse, ?5 retention, ?6 now, ?7 now + lease,
-- ?8 the fingerprint under the previous secret or NULL. Bytes 2 to 33 of a fingerprint are its digest.
INSERT INTO idempotency_records (address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until)
SELECT ?1, 1, ?3,
       CASE law WHEN 1 THEN fence ELSE max(coalesce(fence, 0) + 1, ?6) END,
       CASE law WHEN 1 THEN attempt WHEN 3 THEN 1 ELSE min(attempt + 1, 4294967295) END,
       CASE law WHEN 1 THEN on_lapse ELSE ?4 END,
       CASE law WHEN 1 THEN retention ELSE ?5 END,
       ?2,
       CASE law WHEN 1 THEN max(until, ?7) ELSE ?7 END
FROM (
    SELECT fence, attempt, on_lapse, retention, until,
           CASE
               WHEN found.address IS NULL THEN 3
               WHEN NOT readable THEN NULL
               WHEN phase = 1 AND holder = ?3 AND same_payload THEN 1
               WHEN phase = 3 AND holder = ?3 THEN 2
               WHEN phase = 3 OR removable_at <= ?6 THEN 3
               WHEN phase = 2 AND until <= ?6 THEN 4
               WHEN NOT same_payload THEN 5
               WHEN phase = 2 THEN 6
               WHEN in_doubt_at <= ?6 THEN 7
               WHEN until <= ?6 THEN 8
               ELSE 9
           END AS law
    FROM (SELECT 1) LEFT JOIN (
        SELECT *, substr(fingerprint, 2, 32) IN (substr(?2, 2, 32), substr(coalesce(?8, ?2), 2, 32)) AS same_payload
        FROM idempotency_records
        WHERE address = ?1
    ) AS found
)
WHERE law IN (1, 3, 8)
ON CONFLICT (address) DO UPDATE SET
    phase = excluded.phase, holder = excluded.holder, fence = excluded.fence, attempt = excluded.attempt,
    on_lapse = excluded.on_lapse, retention = excluded.retention,
    fingerprint = CASE WHEN excluded.fence = fence THEN fingerprint ELSE excluded.fingerprint END, -- row 1 writes none
    until = excluded.until, gone = NULL, form = NULL, media = NULL, outcome = NULL
RETURNING fence, attempt;
