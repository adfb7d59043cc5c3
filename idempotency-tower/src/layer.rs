//! The layer, and the one engine behind every service it wraps.

use std::{sync::Arc, time::Duration};

use idempotency_core::{Drained, Engine, Notify, Store, event::Observer};
use tower_layer::Layer;

use crate::{IdempotencyService, Policy, observability::Log, unrecorded::Unrecorded};

/// Makes the services it wraps answer the second copy of a keyed request with the first one's result.
///
/// Do not put it inside an axum router's `nest`: axum takes the prefix off the path there, and two nested routes would
/// look alike. Take `idempotency-axum`'s layer of the same name, which knows the caller's own path.
///
/// Clones share one engine: build it once, clone it to where it is needed, keep one to [`drain`](Self::drain).
#[derive(Debug)]
pub struct IdempotencyLayer<S: Store> {
    door: Arc<DoorState<S>>,
}

/// What all services of one layer share.
#[derive(Debug)]
pub(crate) struct DoorState<S: Store> {
    pub(crate) engine: Engine<S>,
    pub(crate) policy: Policy,
    pub(crate) unrecorded: Arc<Unrecorded>,
}

impl<S: Store> DoorState<S> {
    fn new(engine: Engine<S>, policy: Policy) -> Arc<Self> {
        Arc::new(Self { engine, policy, unrecorded: Arc::default() })
    }

    fn with(&self, engine: Engine<S>, policy: Policy) -> Arc<Self> {
        Arc::new(Self { engine, policy, unrecorded: Arc::clone(&self.unrecorded) })
    }
}

impl<S: Store> IdempotencyLayer<S> {
    /// A layer on `store` with the default [`Policy`].
    pub fn new(store: S) -> Self {
        Self::with_policy(store, Policy::default())
    }

    /// A layer on `store` that does what `policy` says.
    pub fn with_policy(store: S, policy: Policy) -> Self {
        let engine = Engine::observed(store, policy.bounds, Log);
        Self { door: DoorState::new(engine, policy) }
    }

    /// The same, telling `observer` what happens to every operation. [`observability`](crate::observability) says
    /// what there is to see without one.
    pub fn observed(store: S, policy: Policy, observer: impl Observer) -> Self {
        let engine = Engine::observed(store, policy.bounds, (Log, observer));
        Self { door: DoorState::new(engine, policy) }
    }

    /// A layer on the same engine under another policy, for a route or a router of its own. The bounds are the engine's:
    /// what `policy` says of `store_timeout`, `max_live_runs` and `max_waiters` does not count here.
    ///
    /// Where two layers around one route would claim one record (the same key and scope on the same store), the outer one
    /// guards the request and its policy holds. Else each guards it for itself.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        Self { door: self.door.with(self.door.engine.clone(), policy) }
    }

    /// What it does.
    pub fn policy(&self) -> &Policy {
        &self.door.policy
    }

    /// The same, its waiters woken by `notify` too: the store itself, where it can tell. Layers made by
    /// [`under`](Self::under) afterwards are woken as well.
    #[must_use]
    pub fn woken_by(self, notify: impl Notify) -> Self {
        let engine = self.door.engine.clone().woken_by(notify);
        Self { door: self.door.with(engine, self.door.policy.clone()) }
    }

    /// Waits for live runs and pending completions, at most `limit`.
    ///
    /// Call it after the server's own graceful shutdown and before the runtime ends. What is left then is neither
    /// released nor completed: it lapses, and its key frees or is in doubt as the policy says.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.door.engine.drain(limit).await
    }

    /// How many copies wait for the answer of a running request.
    pub fn waiters(&self) -> usize {
        self.door.engine.waiters()
    }

    /// How many runs are live, those whose caller has left and pending completions included.
    pub fn live_runs(&self) -> usize {
        self.door.engine.live_runs()
    }
}

impl<S: Store> Clone for IdempotencyLayer<S> {
    fn clone(&self) -> Self {
        Self { door: Arc::clone(&self.door) }
    }
}

impl<I, S: Store> Layer<I> for IdempotencyLayer<S> {
    type Service = IdempotencyService<I, S>;

    fn layer(&self, inner: I) -> Self::Service {
        IdempotencyService::new(inner, Arc::clone(&self.door))
    }
}
