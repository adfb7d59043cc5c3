//! The service that is wrapped: it reads a body and answers with a copy of it, since a handler's answer is its own.

use std::sync::Arc;

use axum::{Router, extract::State, routing::post};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use tokio::sync::Semaphore;

/// Where the service listens.
pub const PATH: &str = "/orders";
/// A request with this header is not answered before its [`Gate`] opens.
pub const HOLD: HeaderName = HeaderName::from_static("x-hold");

/// Lets a request into the handler and keeps it there.
#[derive(Debug)]
pub struct Gate {
    entered: Semaphore,
    left: Semaphore,
}

impl Gate {
    fn shut() -> Self {
        Self { entered: Semaphore::new(0), left: Semaphore::new(0) }
    }

    /// Waits until a request is inside.
    pub async fn entered(&self) {
        self.entered.acquire().await.expect("the semaphore is never closed").forget();
    }

    /// Lets the one inside go on.
    pub fn open(&self) {
        self.left.add_permits(1);
    }
}

/// The service without any layer, and the gate of its requests.
pub fn app() -> (Router, Arc<Gate>) {
    let gate = Arc::new(Gate::shut());
    (Router::new().route(PATH, post(echo)).with_state(Arc::clone(&gate)), gate)
}

async fn echo(State(gate): State<Arc<Gate>>, headers: HeaderMap, body: Bytes) -> (StatusCode, Bytes) {
    if headers.contains_key(HOLD) {
        gate.entered.add_permits(1);
        gate.left.acquire().await.expect("the semaphore is never closed").forget();
    }
    (StatusCode::CREATED, Bytes::copy_from_slice(&body))
}
