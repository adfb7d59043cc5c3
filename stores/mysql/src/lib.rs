//! Idempotency records in MySQL or MariaDB, beside your own tables if you like: one deciding statement a transition.
