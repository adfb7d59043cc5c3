SELECT name, sheet FROM {sheets} WHERE scope = $1
