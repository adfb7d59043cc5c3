#![doc = include_str!("../README.md")]

mod answer;
mod attempt;
mod body;
mod caller;
mod closing;
mod contract;
mod convert;
mod error;
mod exchange;
mod future;
mod gather;
mod layer;
mod patience;
mod pipe;
mod policy;
mod protocol;
mod pump;
mod refusal;
mod run;
mod scope;
mod service;
mod shadow;
mod unrecorded;

pub mod client;
pub mod observability;

pub use attempt::{Attempt, Verdict};
pub use body::{RequestBody, ResponseBody};
pub use contract::{Contract, KeySpace, Promise};
pub use error::{BodyRefused, BoxError};
pub use future::ResponseFuture;
pub use idempotency_core::{
    Drained, Fence, Key, LeaseLost, Notify, OnLapse, Part, Scope, Secret, Store,
    event::{Event, Observer, StoreCall},
    policy::PolicyError,
    profile::http::{BodyReading, Code, Ending, KeySyntax, OnServerError, Refusal, headers::ReplayedFields},
};
pub use layer::IdempotencyLayer;
pub use policy::{Oversized, Policy, PolicyBuilder, RunFuture};
pub use protocol::{Pass, Protocol};
pub use refusal::{Render, problem_document};
pub use service::IdempotencyService;
