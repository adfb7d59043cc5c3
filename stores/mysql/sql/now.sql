-- Microseconds since the Unix epoch at this moment, after any wait for a lock; the same in every time zone.
-- SYSDATE is this moment in the session's zone, NOW and UTC_TIMESTAMP are the statement's start in that zone and in
-- none. How long the statement has run is therefore SYSDATE - NOW, but for a change to or from summer time meanwhile,
-- which moves both by whole half hours: the difference is taken to the nearest of them.
(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))
 + MOD(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) + 172800000000 + 900000000, 1800000000) - 900000000)
