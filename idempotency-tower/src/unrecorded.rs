//! Runs that leave no record: while the store does not answer, where a policy chose to run all the same.
//!
//! Within this process one copy runs at a time; another process, or a copy that comes after the end, runs it again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use idempotency_core::{
    Address, Fingerprint, Operation, Store,
    profile::http::{Refusal, headers::IDEMPOTENCY_DEGRADED},
};
use tower_service::Service;

use crate::{
    Verdict,
    body::{RequestBody, ResponseBody},
    convert::strip_markers,
    error::BoxError,
    layer::DoorState,
    observability::log,
    refusal::refuse,
    run::call,
};

/// The operations that run without a record in this process.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(Mutex<HashMap<Address, Fingerprint>>);

impl Unrecorded {
    /// A turn for `op`, unless a copy of it, or another payload under its key, runs now.
    pub(crate) fn begin(
        self: &Arc<Self>,
        door: &DoorState<impl Store>,
        op: &Operation,
    ) -> Result<Turn, Refusal> {
        let mut running = self.running();
        if let Some(first) = running.get(op.address()) {
            return Err(if first == op.fingerprint() {
                Refusal::conflict(std::time::Duration::ZERO, door.policy.retry_after_cap)
            } else {
                Refusal::mismatch(first.differing_parts(op.fingerprint()))
            });
        }
        running.insert(*op.address(), *op.fingerprint());
        Ok(Turn { unrecorded: Arc::clone(self), address: *op.address() })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Address, Fingerprint>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one run of its operation in this process; over when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    unrecorded: Arc<Unrecorded>,
    address: Address,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.unrecorded.running().remove(&self.address);
    }
}

/// Runs the handler and marks its answer as degraded. The turn lasts until the head of the answer is there.
pub(crate) async fn run_unrecorded<I, S, Q, P>(
    inner: I,
    request: Request<RequestBody<Q>>,
    turn: Turn,
    door: &DoorState<S>,
) -> Result<Response<ResponseBody<P>>, I::Error>
where
    I: Service<Request<RequestBody<Q>>, Response = Response<P>>,
    P: Body<Data = Bytes>,
    P::Error: Into<BoxError>,
    S: Store,
{
    let mut response = match call(inner, request).await {
        Ok(response) => response?.map(ResponseBody::own),
        Err(_) => {
            log::panicked(&turn.address);
            refuse(&door.policy, &Refusal::panicked())
        }
    };
    strip_markers(response.headers_mut(), &door.policy.replayed_header);
    let marker = HeaderName::from_static(IDEMPOTENCY_DEGRADED);
    response.headers_mut().insert(marker, HeaderValue::from_static("true"));
    response.extensions_mut().insert(Verdict::RanUnrecorded);
    Ok(response)
}
