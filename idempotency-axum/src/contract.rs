//! The contract of a service, as a route.

use std::time::Duration;

use axum::{Router, body::Bytes, routing::get};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use idempotency_tower::Store;
use serde_json::Value;

use crate::IdempotencyLayer;

/// What each route of a service does with keys, published at [`WELL_KNOWN`](Self::WELL_KNOWN) for clients to read before they send one.
///
/// The draft says that a resource must publish this (section 2.5.2). The contract is made from the very layers that
/// guard the routes:
///
/// ```
/// # use axum::{Router, routing::post};
/// # use idempotency_axum::{Contract, IdempotencyLayer, Policy, PolicyError};
/// # use idempotency_store_memory::MemoryStore;
/// # async fn order() {}
/// # async fn refund() {}
/// # fn app() -> Result<Router, PolicyError> {
/// let orders = IdempotencyLayer::new(MemoryStore::new());
/// let refunds = orders.under(Policy::builder().required().build()?);
/// let contract = Contract::new().route("/orders", &orders).route("/refunds", &refunds);
///
/// let app = Router::new()
///     .route("/orders", post(order).layer(orders))
///     .route("/refunds", post(refund).layer(refunds))
///     .merge(contract.into_router());
/// # Ok(app)
/// # }
/// ```
///
/// Its form: a `specification` (the draft's name, version and URL) and a list of `routes`. Durations are ISO 8601,
/// statuses may be ranges such as `4XX`; a status that is listed by itself is not meant by its range. Of who is told apart by what it says the kind alone.
#[derive(Debug, Clone)]
pub struct Contract {
    contract: idempotency_tower::Contract,
    max_age: Duration,
}

impl Contract {
    /// The path it is served at: `/.well-known/idempotency`.
    pub const WELL_KNOWN: &str = idempotency_tower::Contract::WELL_KNOWN;

    /// A contract of no routes, which caches may keep for an hour.
    pub fn new() -> Self {
        Self { contract: idempotency_tower::Contract::new(), max_age: Duration::from_secs(60 * 60) }
    }

    /// Adds what `layer` does on `path`, written as the caller sends it: with the prefixes of the routers it is nested in.
    /// A layer in the shadow adds nothing.
    #[must_use]
    pub fn route<S: Store>(mut self, path: &str, layer: &IdempotencyLayer<S>) -> Self {
        self.contract = self.contract.route(path, layer.policy());
        self
    }

    /// How long caches may keep it, in whole seconds: no longer than you plan changes of a policy ahead. 1 h.
    #[must_use]
    pub const fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// The document.
    pub fn document(&self) -> Value {
        self.contract.document()
    }

    /// A router that serves it, to be merged into the service's own.
    pub fn into_router<T: Clone + Send + Sync + 'static>(self) -> Router<T> {
        let document = Bytes::from(self.document().to_string());
        let headers = [
            (CONTENT_TYPE, "application/json".to_owned()),
            (CACHE_CONTROL, format!("public, max-age={}", self.max_age.as_secs())),
        ];
        Router::new().route(Self::WELL_KNOWN, get(async move || (headers, document)))
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self::new()
    }
}
