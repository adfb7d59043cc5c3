SELECT @@log_bin = 1 AND @@binlog_format = 'STATEMENT' AS by_statement
