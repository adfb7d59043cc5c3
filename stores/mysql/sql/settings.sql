-- What the store needs to know of a server and of how its connections are set. SYSDATE is the time at which it is
-- called, unless the option sysdate-is-now makes it the statement's start.
SELECT CAST(@@autocommit AS SIGNED) AS autocommit, CAST(@@max_allowed_packet AS SIGNED) AS max_packet,
       SLEEP(0.002), SYSDATE(6) > NOW(6) AS clock_goes_on
