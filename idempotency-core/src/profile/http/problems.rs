#![doc = include_str!("../../../docs/problems.md")]

/// What a problem's `type` starts with unless a service has pages of its own; the code follows.
pub const TYPE_BASE: &str =
    "https://docs.rs/idempotency-core/latest/idempotency_core/profile/http/problems/index.html#";
