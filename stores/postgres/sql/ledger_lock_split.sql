SELECT head FROM {ledgers} WHERE scope = $1 FOR UPDATE
