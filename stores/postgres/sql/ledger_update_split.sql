UPDATE {ledgers} SET head = $2, settled = $3, written = clock_timestamp() WHERE scope = $1
