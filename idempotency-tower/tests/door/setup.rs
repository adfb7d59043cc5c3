//! A service behind the door, a caller in front of it, and a store between whose faults a test sets.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use idempotency_store_contract::faults::{Faults, Faulty};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{
    BoxError, IdempotencyLayer, IdempotencyService, Observer, Policy, PolicyBuilder, Protocol, RequestBody,
    ResponseBody,
};
use tower::{Layer, ServiceExt, service_fn, util::BoxCloneSyncService};

pub(crate) type TestStore = Faulty<MemoryStore>;
pub(crate) type Incoming = Request<RequestBody<Full<Bytes>>>;
pub(crate) type OwnBody = UnsyncBoxBody<Bytes, BodyError>;
type Handler = BoxCloneSyncService<Incoming, Response<OwnBody>, BoxError>;

/// A door in front of a handler that counts its runs.
pub(crate) struct Door {
    pub(crate) layer: IdempotencyLayer<TestStore>,
    pub(crate) faults: Faults,
    pub(crate) runs: Arc<AtomicUsize>,
    service: IdempotencyService<Handler, TestStore>,
}

impl Door {
    pub(crate) fn new<F>(policy: PolicyBuilder, handler: F) -> Self
    where
        F: Fn(Incoming) -> BoxFuture<'static, Result<Response<OwnBody>, BoxError>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let (store, faults) = Faulty::new(MemoryStore::new());
        Self::of(IdempotencyLayer::with_policy(store, policy.build().unwrap()), faults, handler)
    }

    /// The same, in the words of `protocol`.
    pub(crate) fn speaking<F>(policy: PolicyBuilder, protocol: Protocol, handler: F) -> Self
    where
        F: Fn(Incoming) -> BoxFuture<'static, Result<Response<OwnBody>, BoxError>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let (store, faults) = Faulty::new(MemoryStore::new());
        let policy = policy.build().unwrap().speaking(protocol);
        Self::of(IdempotencyLayer::with_policy(store, policy), faults, handler)
    }

    /// The same, watched by `observer`.
    pub(crate) fn observed<F>(policy: PolicyBuilder, observer: impl Observer, handler: F) -> Self
    where
        F: Fn(Incoming) -> BoxFuture<'static, Result<Response<OwnBody>, BoxError>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let (store, faults) = Faulty::new(MemoryStore::new());
        Self::of(IdempotencyLayer::observed(store, policy.build().unwrap(), observer), faults, handler)
    }

    fn of<F>(layer: IdempotencyLayer<TestStore>, faults: Faults, handler: F) -> Self
    where
        F: Fn(Incoming) -> BoxFuture<'static, Result<Response<OwnBody>, BoxError>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = service_fn(move |request| {
            counted.fetch_add(1, Ordering::SeqCst);
            handler(request)
        });
        let service = layer.layer(BoxCloneSyncService::new(handler));
        Self { layer, faults, runs, service }
    }

    /// A door whose handler answers every request with what `answer` makes.
    pub(crate) fn answering(
        policy: PolicyBuilder,
        answer: impl Fn() -> Response<OwnBody> + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::new(policy, move |_| {
            let answer = answer();
            Box::pin(async move { Ok(answer) })
        })
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Sends a request; the answer's body is not read yet.
    pub(crate) fn open(
        &self,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<ResponseBody<OwnBody>>, BoxError>> {
        Box::pin(self.service.clone().oneshot(request))
    }

    /// Sends a request and reads the answer to its end.
    pub(crate) fn send(&self, request: Request<Full<Bytes>>) -> BoxFuture<'static, Answer> {
        let response = self.open(request);
        Box::pin(async { Answer::read(response.await.unwrap()).await })
    }
}

/// A policy whose leases a test can outlive.
pub(crate) fn policy() -> PolicyBuilder {
    Policy::builder()
        .lease(Duration::from_millis(600))
        .store_timeout(Duration::from_millis(500))
        .settle_wait(Duration::from_millis(200))
}

pub(crate) fn post(key: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post("/orders?shop=1").header("idempotency-key", key).body(Full::from(body)).unwrap()
}

pub(crate) fn text(text: &'static str) -> OwnBody {
    Full::from(text).map_err(never).boxed_unsync()
}

pub(crate) fn never(never: Infallible) -> BodyError {
    match never {}
}

/// Why a body of a test breaks off.
#[derive(Debug)]
pub(crate) struct BodyError(pub(crate) &'static str);

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BodyError {}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) async fn read(response: Response<ResponseBody<OwnBody>>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned();
        Self { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes(), trailers }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    /// The `code` of a problem document, whose other members are checked on the way.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        assert_eq!(self.header("cache-control"), Some("no-store"));
        let problem: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["status"], self.status);
        let code = problem["code"].as_str().unwrap().to_owned();
        assert!(problem["type"].as_str().unwrap().ends_with(&format!("#{code}")), "{problem}");
        assert!(
            !problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty()
        );
        code
    }

    pub(crate) fn problem(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
