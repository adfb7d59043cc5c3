-- How a record is read and written; every other script stands below this one. A record is one string: words with one
-- space between them, then bytes. README.md describes it, and src/record.rs reads the same.
--
--   1 PHASE WAITED AT TERM THEN FORM MEDIA ATTEMPT FENCE ON_LAPSE RETENTION HOLDER FINGERPRINT OUTCOME
--
-- A pattern that finds nothing has met a record of another phase, or one that no script of ours wrote: nothing is
-- changed, and the store that asked reads it itself. Times and durations are microseconds, in doubles, which count
-- exactly up to 2^53; what lasts until NEVER or longer does not end.
local NEVER = 9e15
-- How many milliseconds a server keeps a record that is over, so that no rounding of its clock removes one early.
local GRACE = 1000
-- How many bytes a fingerprint has after its first one, and how many of them come after its digest.
local FINGERPRINT, PARTS = 104, 72

-- Of a record in flight: whether somebody waits; where begins what an ending leaves as it is; the holder; where the
-- fingerprint goes on.
local IN_FLIGHT = '^1 1 ([01]) %d+%+%d+ %d+ %- %- %- ()%d+ %d+%+%d+ [01] %d+ (................)\2()'
local IN_DOUBT = '^1 4 ([01]) %d+%+%d+ %- %- %- %- ()%d+ %d+%+%d+ [01] %d+ (................)\2()'
-- The same of a record in flight, with all that its lapse depends on: the second and microsecond in which the term
-- began, the term; the fence's second and microsecond, on_lapse, the retention.
local TERM = '^1 1 ([01]) (%d+)%+(%d+) (%d+) %- %- %- ()%d+ (%d+)%+(%d+) ([01]) (%d+) (................)\2()'
