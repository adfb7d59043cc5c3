SHOW SESSION VARIABLES WHERE Variable_name IN ('autocommit', 'binlog_format', 'log_bin', 'max_allowed_packet')
