#![doc = include_str!("../README.md")]

mod body;
mod ending;
mod future;
mod interceptor;
mod layer;
mod message;
mod methods;
mod refusal;
mod service;

pub use ending::{code_ending, with_ending};
pub use future::GrpcIdempotencyFuture;
#[cfg(feature = "metrics")]
pub use idempotency_tower::observability::Metrics;
pub use idempotency_tower::{
    Attempt, Code, Drained, Ending, Event, Fence, Key, KeySyntax, LeaseLost, Notify, Observer, OnLapse,
    OnServerError, Oversized, Policy, PolicyBuilder, PolicyError, Refusal, ReplayedFields, Scope, Secret,
    Store, Verdict,
    client::{Misuse, OperationKey},
};
pub use interceptor::{IdempotencyKey, KeyCheck, KeySender};
pub use layer::GrpcIdempotencyLayer;
pub use methods::{ClientStreams, DescriptorError};
pub use refusal::{DOMAIN, refusal_status};
pub use service::GrpcIdempotencyService;
