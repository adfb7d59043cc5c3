SELECT state::text FROM {ledgers} WHERE scope = $1 FOR UPDATE
