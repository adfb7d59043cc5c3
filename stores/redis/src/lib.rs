//! Idempotency records in Redis, Valkey or a cluster of them: one deciding script a transition.
