#![doc = include_str!("../README.md")]

mod early;
mod extract;
mod layer;

pub use early::{Early, EarlyRejection};
pub use extract::{Attempt, IdempotencyKey, Unguarded};
pub use idempotency_tower::{
    Code, Drained, Ending, Fence, Key, KeySyntax, LeaseLost, OnLapse, OnServerError, Oversized, Policy,
    PolicyBuilder, PolicyError, Scope, Store, Verdict,
};
pub use layer::IdempotencyLayer;
