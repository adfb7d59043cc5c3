-- 2^61 microseconds, 73,000 years: the `due` of a record that no purge may remove as it stands. Terms are cut to it,
-- so that no sum of the time and two of them is out of range.
2305843009213693952
