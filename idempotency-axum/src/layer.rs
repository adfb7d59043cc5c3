//! The layer, as axum routers want it.

use std::time::Duration;

use axum::extract::OriginalUri;
use http::{Uri, request::Parts};
use idempotency_tower::{Drained, IdempotencyService, Observer, Policy, Store};
use tower_layer::Layer;

/// Makes a router answer the second copy of a keyed request with the first one's result.
///
/// It is tower's layer with the caller's own path in the fingerprint, wherever in nested routers it stands. Put it on
/// with [`Router::layer`](axum::Router::layer), or with [`route_layer`](axum::Router::route_layer), which leaves
/// requests that match no route alone.
#[derive(Debug)]
pub struct IdempotencyLayer<S: Store>(idempotency_tower::IdempotencyLayer<S>);

impl<S: Store> IdempotencyLayer<S> {
    /// A layer on `store` with the default [`Policy`].
    pub fn new(store: S) -> Self {
        Self::with_policy(store, Policy::default())
    }

    /// A layer on `store` that does what `policy` says.
    pub fn with_policy(store: S, policy: Policy) -> Self {
        Self(idempotency_tower::IdempotencyLayer::with_policy(store, policy.with_original_uri(original_uri)))
    }

    /// The same, telling `observer` what happens to every operation.
    pub fn observed(store: S, policy: Policy, observer: impl Observer) -> Self {
        Self(idempotency_tower::IdempotencyLayer::observed(
            store,
            policy.with_original_uri(original_uri),
            observer,
        ))
    }

    /// Waits for live runs and pending completions, at most `limit`: after the server's own graceful shutdown, before
    /// the runtime ends. What is left then lapses.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.0.drain(limit).await
    }

    /// How many runs are live, those whose caller has left and pending completions included.
    pub fn live_runs(&self) -> usize {
        self.0.live_runs()
    }
}

impl<S: Store> Clone for IdempotencyLayer<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I, S: Store> Layer<I> for IdempotencyLayer<S> {
    type Service = IdempotencyService<I, S>;

    fn layer(&self, inner: I) -> Self::Service {
        self.0.layer(inner)
    }
}

/// The URI before any router took a prefix off it.
fn original_uri(parts: &Parts) -> &Uri {
    parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0)
}
