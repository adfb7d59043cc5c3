SELECT head FROM {ledgers} WHERE scope = $1
