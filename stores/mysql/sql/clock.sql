-- Whether SYSDATE is the time at which it is called. The option sysdate-is-now makes it the statement's start.
SELECT SLEEP(0.002), SYSDATE(6) > NOW(6) AS goes_on
