//! The layer, as axum routers want it.

use std::time::Duration;

use axum::extract::OriginalUri;
use http::{Uri, request::Parts};
use idempotency_tower::{Drained, Notify, Observer, Policy, Store};
use tower_layer::Layer;

use crate::IdempotencyService;

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

    /// A layer on the same engine under another policy, for a route or a router of its own:
    ///
    /// ```
    /// # use axum::{Router, routing::post};
    /// # use idempotency_axum::{IdempotencyLayer, OnLapse, OnServerError, Policy, PolicyError};
    /// # use idempotency_store_memory::MemoryStore;
    /// # async fn refund() {}
    /// # async fn comment() {}
    /// # fn app() -> Result<Router, PolicyError> {
    /// let idempotency = IdempotencyLayer::new(MemoryStore::new());
    /// let money = Policy::builder().required().on_server_error(OnServerError::Hold).on_lapse(OnLapse::Hold).build()?;
    ///
    /// let app = Router::new()
    ///     .route("/refunds", post(refund).layer(idempotency.under(money)))
    ///     .route("/comments", post(comment).layer(idempotency));
    /// # Ok(app)
    /// # }
    /// ```
    ///
    /// The bounds are the engine's: what `policy` says of `store_timeout`, `max_live_runs` and `max_waiters` does not
    /// count here. Where two layers around one route would claim one record (the same key and scope on the same store),
    /// the outer one guards the request and its policy holds. Else each guards it for itself.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        Self(self.0.under(policy.with_original_uri(original_uri)))
    }

    /// What it does.
    pub fn policy(&self) -> &Policy {
        self.0.policy()
    }

    /// The same, its waiters woken by `notify` too: the store itself, where it can tell. Layers made by
    /// [`under`](Self::under) afterwards are woken as well.
    #[must_use]
    pub fn woken_by(self, notify: impl Notify) -> Self {
        Self(self.0.woken_by(notify))
    }

    /// How many copies wait for the answer of a running request.
    pub fn waiters(&self) -> usize {
        self.0.waiters()
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
        IdempotencyService::new(&self.0, inner)
    }
}

/// The URI before any router took a prefix off it.
fn original_uri(parts: &Parts) -> &Uri {
    parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0)
}
