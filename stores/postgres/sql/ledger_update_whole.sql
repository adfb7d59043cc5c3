UPDATE {ledgers} SET state = $2::jsonb, version = version + 1, updated_at = now() WHERE scope = $1
