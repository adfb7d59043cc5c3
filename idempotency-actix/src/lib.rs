#![doc = include_str!("../README.md")]

mod body;
mod contract;
mod convert;
mod early;
mod error;
mod extract;
mod future;
mod handler;
mod layer;
mod service;

pub use body::GuardedBody;
pub use contract::Contract;
pub use early::{Early, EarlyRejection};
pub use extract::{Attempt, IdempotencyKey, Unguarded};
pub use future::IdempotencyFuture;
#[cfg(feature = "metrics")]
pub use idempotency_tower::observability::Metrics;
pub use idempotency_tower::{
    BodyReading, Code, Drained, Ending, Event, Fence, Key, KeySyntax, LeaseLost, Notify, Observer, OnLapse,
    OnServerError, Oversized, Policy, PolicyBuilder, PolicyError, Refusal, Render, ReplayedFields, Scope,
    Secret, Store, Verdict,
};
pub use layer::Idempotency;
pub use service::IdempotencyMiddleware;
