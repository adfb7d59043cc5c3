-- Microseconds since the Unix epoch, in no time zone; seconds as a double are exact to less than one until the year 2106.
-- clock_timestamp() is read each time it is met, not once a transaction or statement as now() is.
(date_part('epoch', clock_timestamp()) * 1000000)::bigint
