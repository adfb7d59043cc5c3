-- $1 the channel, $2 the addresses of records that ended, in hexadecimal digits.
SELECT pg_notify($1, address) FROM unnest($2) AS address
