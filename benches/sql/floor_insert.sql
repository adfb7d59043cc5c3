INSERT INTO idempotency_floor (address, claim) VALUES ($1, $2) ON CONFLICT (address) DO NOTHING;
