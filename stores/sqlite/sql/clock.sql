-- unixepoch('subsec') is a float of whole milliseconds; rounding in milliseconds makes the microseconds exact.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000;
