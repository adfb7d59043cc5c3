//! Idempotency records in PostgreSQL, beside your own tables if you like: one deciding statement a transition.
