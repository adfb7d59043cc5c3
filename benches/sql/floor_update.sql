UPDATE idempotency_floor SET outcome = $2 WHERE address = $1;
