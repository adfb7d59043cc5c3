#![doc = include_str!("../README.md")]

mod contract;
mod early;
mod extract;
mod layer;
mod service;

pub mod openapi;

pub use contract::Contract;
pub use early::{Early, EarlyRejection};
pub use extract::{Attempt, IdempotencyKey, Unguarded};
#[cfg(feature = "metrics")]
pub use idempotency_tower::observability::Metrics;
pub use idempotency_tower::{
    BodyReading, Code, Drained, Ending, Event, Fence, Key, KeySyntax, LeaseLost, Notify, Observer, OnLapse,
    OnServerError, Oversized, Policy, PolicyBuilder, PolicyError, Refusal, Render, ReplayedFields, Scope,
    Secret, Store, Verdict,
};
pub use layer::IdempotencyLayer;
pub use service::{IdempotencyFuture, IdempotencyService};
