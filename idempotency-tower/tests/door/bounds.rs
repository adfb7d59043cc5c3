//! What is beyond a bound gets a refusal that names it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::{Ready, ready};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use idempotency_store_contract::faults::Call;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{BoxError, IdempotencyLayer, Oversized, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::setup::{Answer, BodyError, Door, Incoming, OwnBody, policy, post, text};

fn echo() -> impl Fn(Incoming) -> futures_util::future::BoxFuture<'static, Result<Response<OwnBody>, BoxError>>
+ Clone
+ Send
+ Sync
+ 'static {
    |request| {
        Box::pin(async move {
            let body = request.into_body().collect().await?.to_bytes();
            Ok(Response::new(Full::from(body).map_err(crate::setup::never).boxed_unsync()))
        })
    }
}

#[tokio::test]
async fn a_request_body_over_the_bound_claims_nothing() {
    let door = Door::new(policy().max_request_bytes(4), echo());
    let refused = door.send(post("k", "12345")).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "payload-too-large"));
    assert!(refused.problem()["detail"].as_str().unwrap().contains("4 bytes"));
    assert_eq!((door.faults.calls(Call::Claim), door.runs()), (0, 0));
    assert_eq!(door.send(post("k", "1234")).await.body, "1234");
}

#[tokio::test]
async fn an_undeclared_body_is_counted_as_it_comes_and_a_broken_one_is_refused() {
    let layer =
        IdempotencyLayer::with_policy(MemoryStore::new(), policy().max_request_bytes(4).build().unwrap());
    let service = layer.layer(service_fn(|request: Request<RequestBody<OwnBody>>| async move {
        let body = request.into_body().collect().await?;
        assert!(body.trailers().is_some(), "request trailers reach the handler");
        Ok::<_, BoxError>(Response::new(
            Full::from(body.to_bytes()).map_err(crate::setup::never).boxed_unsync(),
        ))
    }));
    let send = |frames: Vec<Result<Frame<Bytes>, BodyError>>| {
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let request = Request::post("/").header("idempotency-key", "k").body(body).unwrap();
        let service = service.clone();
        async move { Answer::read(service.oneshot(request).await.unwrap()).await }
    };
    let data = |text: &'static str| Ok(Frame::data(Bytes::from(text)));
    assert_eq!(send(vec![data("123"), data("45")]).await.code(), "payload-too-large");
    let broken = send(vec![data("12"), Err(BodyError("reset by peer"))]).await;
    assert_eq!((broken.status, broken.code().as_str()), (400, "unreadable-body"));
    let whole = send(vec![data("12"), data("34"), Ok(Frame::trailers(http::HeaderMap::new()))]).await;
    assert_eq!((whole.status, &whole.body[..]), (200, &b"1234"[..]), "the key was free all the time");
}

#[tokio::test]
async fn more_runs_than_allowed_are_refused_and_claim_nothing() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let door = Arc::new(Door::new(policy().max_live_runs(1), {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text("done")))
            })
        }
    }));
    let first = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.send(post("k", "a")).await }
    });
    door.faults.reached(Call::Claim, 1).await;
    let refused = door.send(post("other", "a")).await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(door.faults.calls(Call::Claim), 1);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().status, 200);
}

/// Counts readiness and panics when it is called without.
struct Probe {
    ready: bool,
    held: Arc<AtomicUsize>,
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self { ready: false, held: Arc::clone(&self.held) }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if self.ready {
            self.held.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl<B> Service<Request<B>> for Probe {
    type Response = Response<OwnBody>;
    type Error = BoxError;
    type Future = Ready<Result<Response<OwnBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !self.ready {
            self.ready = true;
            self.held.fetch_add(1, Ordering::SeqCst);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        assert!(self.ready, "called without being ready");
        self.ready = false;
        self.held.fetch_sub(1, Ordering::SeqCst);
        ready(Ok(Response::new(text("done"))))
    }
}

#[tokio::test]
async fn readiness_is_used_once_and_given_back() {
    let held = Arc::new(AtomicUsize::new(0));
    let layer = IdempotencyLayer::with_policy(MemoryStore::new(), policy().build().unwrap());
    let mut service = layer.layer(Probe { ready: false, held: Arc::clone(&held) });
    let send = async |service: &mut idempotency_tower::IdempotencyService<Probe, MemoryStore>,
                      key: &str,
                      body| {
        let future = ServiceExt::<Request<Full<Bytes>>>::ready(service).await.unwrap().call(post(key, body));
        Answer::read(future.await.unwrap()).await
    };
    for number in 0..100 {
        let key = format!("k{}", number / 3);
        send(&mut service, &key, "a").await;
        send(&mut service, &key, "b").await;
        send(&mut service, "\"bad", "a").await;
        assert_eq!(held.load(Ordering::SeqCst), 0, "turn {number}");
    }
}

#[tokio::test]
async fn an_answer_whose_head_the_store_cannot_hold_is_done_all_the_same() {
    let long = || format!("/receipts/{}", "1".repeat(3_000));
    for oversized in [Oversized::Tombstone, Oversized::OmitBody] {
        let store = MemoryStore::builder().max_bytes(32 << 10).build().unwrap(); // 2 KiB an outcome
        let policy = policy().oversized(oversized).build().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let service = IdempotencyLayer::with_policy(store, policy).layer(service_fn(move |_: Incoming| {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = Response::builder().status(303).header("location", long()).body(text("paid"));
            ready(Ok::<_, BoxError>(answer.unwrap()))
        }));
        let first = Answer::read(service.clone().oneshot(post("k", "a")).await.unwrap()).await;
        assert_eq!((first.status, &first.body[..]), (303, &b"paid"[..]));
        let second = Answer::read(service.clone().oneshot(post("k", "a")).await.unwrap()).await;
        assert_eq!(second.code(), "result-not-replayable", "{oversized:?}");
        assert_eq!(second.problem()["original_status"], 303);
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{oversized:?}");
    }
}
