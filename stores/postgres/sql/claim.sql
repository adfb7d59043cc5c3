-- Rows 1 to 9: $1 address, $2 fingerprint, $3 holder, $4 on_lapse, $5 retention, $6 lease, $7 the fingerprint under the
-- previous secret or NULL, $8 how long no purge need look at the record. See schema_claim.sql.
SELECT {claim}($1, $2, $3, $4, $5, $6, $7, $8)
