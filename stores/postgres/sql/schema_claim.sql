-- A claim; the values are those of claim.sql. Each of the two statements that write decides by itself: the insert grants
-- a key that has no record, and the update one whose record the law grants. Where neither does, nothing was written and
-- nothing locked. Answers fence and attempt of a grant and for how long it has stood, else the record.
--
-- A function, because its statements are prepared when they are first met. In one statement all of them would be at each
-- fresh grant, and would cost as much again. Each sees what was committed until it begins, not only until the claim did.
-- Replaced, because one stays behind when somebody drops its table.
CREATE OR REPLACE FUNCTION {claim}(bytea, bytea, bytea, smallint, bigint, bigint, bytea, bigint) RETURNS record
LANGUAGE plpgsql AS $function$
DECLARE
    now bigint := {now};
    granted record;
    standing record;
BEGIN
    INSERT INTO {records} (address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until, due)
    VALUES ($1, 1, $3, now, 1, $4, $5, $2, now + $6, now + $8)
    ON CONFLICT (address) DO NOTHING;
    IF FOUND THEN
        RETURN ROW(now, 1::bigint, {now} - now, NULL::record);
    END IF;

    UPDATE {records} AS r SET
        phase = 1,
        holder = $3,
        fence = CASE law WHEN 1 THEN r.fence ELSE greatest(r.fence + 1, read_at) END,
        attempt = CASE law WHEN 1 THEN r.attempt WHEN 3 THEN 1 ELSE least(r.attempt + 1, 4294967295) END,
        on_lapse = CASE law WHEN 1 THEN r.on_lapse ELSE $4 END,
        retention = CASE law WHEN 1 THEN r.retention ELSE $5 END,
        fingerprint = CASE law WHEN 1 THEN r.fingerprint ELSE $2 END,
        until = CASE law WHEN 1 THEN greatest(r.until, read_at + $6) ELSE read_at + $6 END,
        due = CASE law WHEN 1 THEN r.due ELSE read_at + $8 END,
        waited = law = 1 AND r.waited,
        gone = NULL, form = NULL, media = NULL, outcome = NULL
    FROM (
        -- What the law and the clock say once the record is locked.
        SELECT r.address, {law} AS law, {now} AS read_at
        FROM (SELECT * FROM {records} AS r WHERE r.address = $1 AND {law} IS NOT NULL FOR NO KEY UPDATE) AS r
    ) AS locked
    WHERE r.address = locked.address AND law IS NOT NULL
    RETURNING r.fence, r.attempt INTO granted;
    IF FOUND THEN
        RETURN ROW(granted.fence, granted.attempt, 0::bigint, NULL::record);
    END IF;

    SELECT {record_row} AS found INTO standing FROM {records} AS r WHERE r.address = $1;
    RETURN ROW(NULL::bigint, NULL::bigint, NULL::bigint, standing.found);
END
$function$
