//! Every store on a clock that the test moves, a handler that counts, and a caller of any stack of layers.

use std::{
    convert::Infallible,
    fmt::Debug,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Builder};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use idempotency_core::{
    DynStore,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_memory::MemoryStore;
use idempotency_store_sqlite::SqliteStore;
use idempotency_tower::{IdempotencyLayer, PolicyBuilder};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::setup::{Answer, BodyError, OwnBody, text};

/// A store and the clock it reads.
pub(crate) struct Shelf {
    pub(crate) name: &'static str,
    pub(crate) store: DynStore,
    pub(crate) clock: Arc<ManualClock>,
}

/// One shelf of each kind.
pub(crate) async fn shelves() -> [Shelf; 2] {
    let clock = || Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    let (steady, ticking) = (clock(), clock());
    let memory = MemoryStore::builder().clock(Arc::clone(&steady)).build().unwrap();
    let sqlite = SqliteStore::builder().clock(Arc::clone(&ticking)).open_in_memory().await.unwrap();
    [
        Shelf { name: "memory", store: DynStore::new(memory), clock: steady },
        Shelf { name: "sqlite", store: DynStore::new(sqlite), clock: ticking },
    ]
}

/// A service that counts its runs and answers each with what `answer` makes of its number, whatever its request's body.
pub(crate) fn counting<Q, A>(
    runs: &Arc<AtomicUsize>,
    answer: A,
) -> impl Service<Request<Q>, Response = Response<OwnBody>, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ Sync
+ use<Q, A>
where
    Q: Send + 'static,
    A: Fn(usize) -> Response<OwnBody> + Clone + Send + Sync + 'static,
{
    let runs = Arc::clone(runs);
    service_fn(move |_: Request<Q>| ready(Ok(answer(runs.fetch_add(1, Ordering::SeqCst) + 1))))
}

/// The number of the run as an answer: two runs never answer alike.
pub(crate) fn number(run: usize) -> Response<OwnBody> {
    Response::new(boxed(Full::from(run.to_string())))
}

/// A door in front of a counting handler, on any store.
pub(crate) struct Counter {
    pub(crate) layer: IdempotencyLayer<DynStore>,
    runs: Arc<AtomicUsize>,
    answer: fn(usize) -> Response<OwnBody>,
}

impl Counter {
    pub(crate) fn on(store: &DynStore, policy: PolicyBuilder) -> Self {
        Self::answering(store, policy, number)
    }

    pub(crate) fn answering(
        store: &DynStore,
        policy: PolicyBuilder,
        answer: fn(usize) -> Response<OwnBody>,
    ) -> Self {
        let layer = IdempotencyLayer::with_policy(store.clone(), policy.build().unwrap());
        Self { layer, runs: Arc::default(), answer }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        ask(&self.layer.layer(counting(&self.runs, self.answer)), request).await
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

/// Sends a request to a copy of `service` and reads the answer to its end.
pub(crate) async fn ask<S, Q, P>(service: &S, request: Request<Q>) -> Answer
where
    S: Service<Request<Q>, Response = Response<P>> + Clone,
    S::Error: Debug,
    P: Body<Data = Bytes>,
    P::Error: Debug,
{
    read(service.clone().oneshot(request).await.unwrap()).await
}

pub(crate) async fn read<P>(response: Response<P>) -> Answer
where
    P: Body<Data = Bytes>,
    P::Error: Debug,
{
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned();
    Answer { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes(), trailers }
}

/// A body whose type no longer matters.
pub(crate) fn boxed<B>(body: B) -> OwnBody
where
    B: Body<Data = Bytes> + Send + 'static,
{
    body.map_err(|_| BodyError("the body broke off")).boxed_unsync()
}

/// The beginning of a keyed request.
pub(crate) fn keyed(key: &str) -> Builder {
    Request::post("/orders").header("idempotency-key", key)
}

/// Ends a request that [`keyed`] began.
pub(crate) fn with(request: Builder, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    request.body(Full::from(body.into())).unwrap()
}

/// An answer of this status.
pub(crate) fn status(status: u16, body: &'static str) -> Response<OwnBody> {
    Response::builder().status(status).body(text(body)).unwrap()
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
