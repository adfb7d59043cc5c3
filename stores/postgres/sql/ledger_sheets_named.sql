SELECT name, sheet FROM {sheets} WHERE scope = $1 AND name = ANY($2)
