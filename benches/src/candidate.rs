//! What is measured: one router, wrapped in one way or another.

use std::{fmt, sync::Arc};

use axum::Router;
use http::StatusCode;
use idempotency_axum::{IdempotencyLayer, Store};
use idempotency_store_memory::MemoryStore;

use crate::{
    Route,
    app::{Gate, app},
    floor::Floor,
};

const BARE: &str = "bare";

/// A way to wrap the service.
pub struct Candidate {
    /// What a table calls it.
    pub name: &'static str,
    mismatch: StatusCode,
    wrap: Box<dyn Fn(Router) -> Router + Send + Sync>,
}

impl Candidate {
    /// The candidate that wraps a router as `wrap` does.
    pub fn new(name: &'static str, wrap: impl Fn(Router) -> Router + Send + Sync + 'static) -> Self {
        Self { name, mismatch: StatusCode::UNPROCESSABLE_ENTITY, wrap: Box::new(wrap) }
    }

    /// The baseline: a layer that does nothing, so that what a layer costs by being there is not counted.
    pub fn bare() -> Self {
        Self::new(BARE, |router| router.layer(tower_layer::layer_fn(|service| service)))
    }

    /// The least that could be called a layer: what of the price is anybody's.
    pub fn floor() -> Self {
        Self::new("floor", |router| router.layer(tower_layer::layer_fn(Floor::new)))
    }

    /// Our layer under its default policy, on a memory store of its own.
    pub fn memory() -> Self {
        Self::new("memory", |router| router.layer(IdempotencyLayer::new(MemoryStore::new())))
    }

    /// Our layer under its default policy, on `store`.
    pub fn on(name: &'static str, store: impl Store + Clone) -> Self {
        Self::new(name, move |router| router.layer(IdempotencyLayer::new(store.clone())))
    }

    /// The same, which answers a mismatch with `status` and not with 422.
    #[must_use]
    pub fn with_mismatch(self, status: StatusCode) -> Self {
        Self { mismatch: status, ..self }
    }

    /// The status of an answer on `route`.
    pub(crate) fn status(&self, route: Route) -> StatusCode {
        match route {
            _ if self.name == BARE => StatusCode::CREATED,
            Route::NoKey | Route::FirstRun | Route::Replay => StatusCode::CREATED,
            Route::Mismatch => self.mismatch,
            Route::InFlight => StatusCode::CONFLICT,
        }
    }

    /// The wrapped service, and the gate of its requests.
    pub fn build(&self) -> (Router, Arc<Gate>) {
        let (router, gate) = app();
        ((self.wrap)(router), gate)
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("name", &self.name).finish_non_exhaustive()
    }
}
