-- Whether the record r has the fingerprint $2, or $7, the one under the previous secret or NULL. Bytes 2 to 33 of a
-- fingerprint are its digest.
(
    substring(r.fingerprint FROM 2 FOR 32)
    IN (substring($2 FROM 2 FOR 32), substring(coalesce($7, $2) FROM 2 FOR 32))
)
