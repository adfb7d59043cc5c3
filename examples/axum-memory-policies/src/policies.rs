//! What each route does with keys.

use std::time::Duration;

use idempotency_axum::{
    IdempotencyLayer, OnLapse, OnServerError, Oversized, Policy, PolicyError, Scope, Store,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest list of ids that is exported, in bytes.
pub const MAX_EXPORT_BYTES: usize = 4 << 20;

/// A customer, as authentication verified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer(pub String);

/// The layers of the three routes. They share one engine: one store, one set of bounds, one drain.
#[derive(Debug)]
pub struct Layers<S: Store> {
    /// Guards `/comments`.
    pub comments: IdempotencyLayer<S>,
    /// Guards `/payments`.
    pub payments: IdempotencyLayer<S>,
    /// Guards `/exports`.
    pub exports: IdempotencyLayer<S>,
}

impl<S: Store> Layers<S> {
    /// The three policies on `store`.
    ///
    /// # Errors
    /// [`PolicyError`] names the rule that a policy breaks.
    pub fn on(store: S) -> Result<Self, PolicyError> {
        let comments = IdempotencyLayer::new(store);
        Ok(Self { payments: comments.under(payments()?), exports: comments.under(exports()?), comments })
    }
}

/// Money: nothing runs twice without somebody's word.
fn payments() -> Result<Policy, PolicyError> {
    Policy::builder()
        .required()
        .scope(|parts| parts.extensions.get().map(|Customer(name)| Scope::principal(name.as_str())))
        .on_server_error(OnServerError::Hold)
        .on_lapse(OnLapse::Hold)
        .retention(7 * DAY)
        .reject_expired_keys_for(30 * DAY)
        .docs_url("https://shop.example/docs/payments#retries")
        .build()
}

/// Slow and long: a copy waits rather than asks again, and an answer of more than 64 KiB is not kept whole.
fn exports() -> Result<Policy, PolicyError> {
    Policy::builder()
        .wait(Duration::from_secs(20))
        .oversized(Oversized::OmitBody)
        .max_response_bytes(64 << 10)
        .max_request_bytes(MAX_EXPORT_BYTES)
        .retention(Duration::from_secs(60 * 60))
        .build()
}
