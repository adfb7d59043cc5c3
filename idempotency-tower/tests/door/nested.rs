//! Two layers around one service: each guards, unless both would claim one record.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{BoxError, Ending, IdempotencyLayer, OnServerError, Policy, RequestBody};
use tower::{
    Layer, ServiceExt, service_fn,
    util::{BoxCloneSyncService, MapRequest},
};

use crate::setup::{Answer, BodyError, OwnBody, post, text};

type Service = BoxCloneSyncService<Request<Full<Bytes>>, Response<OwnBody>, BoxError>;

/// `inner` behind a layer.
fn behind(layer: &IdempotencyLayer<MemoryStore>, inner: Service) -> Service {
    let inner =
        MapRequest::new(inner, |request: Request<RequestBody<Full<Bytes>>>| request.map(|_| Full::from("a")));
    let service = layer.layer(inner).map_response(|response| {
        response.map(|body| body.map_err(|_| BodyError("broke off")).boxed_unsync())
    });
    BoxCloneSyncService::new(service)
}

/// A service that counts its runs and answers each with what `answer` makes.
fn counting(answer: fn() -> Response<OwnBody>) -> (Service, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let service = service_fn(move |_: Request<Full<Bytes>>| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok::<_, BoxError>(answer()))
    });
    (BoxCloneSyncService::new(service), runs)
}

async fn send(service: &Service, request: Request<Full<Bytes>>) -> Answer {
    let (head, body) = service.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status.as_u16(), headers: head.headers, body, trailers: None }
}

fn done() -> Response<OwnBody> {
    Response::new(text("done"))
}

#[tokio::test]
async fn layers_that_share_a_record_guard_once_though_their_engines_differ() {
    let store = MemoryStore::new();
    let (service, runs) = counting(done);
    let own = |store: &MemoryStore| IdempotencyLayer::new(store.clone());
    let other = own(&MemoryStore::new());
    // The innermost layer shares its record with the outermost, past another one that guards for itself.
    let service = behind(&own(&store), behind(&other, behind(&own(&store), behind(&own(&store), service))));
    assert_eq!(send(&service, post("k", "a")).await.body, "done");
    assert!(send(&service, post("k", "a")).await.is_replay());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_layer_on_another_store_guards_by_its_own_policy() {
    let money = Policy::builder().required().on_server_error(OnServerError::Hold).build().unwrap();
    let (service, runs) = counting(|| Response::builder().status(500).body(text("boom")).unwrap());
    let inner = behind(&IdempotencyLayer::with_policy(MemoryStore::new(), money), service);
    let service = behind(&IdempotencyLayer::new(MemoryStore::new()), inner);
    assert_eq!(send(&service, post("k", "a")).await.status, 500);
    for _ in 0..2 {
        let refused = send(&service, post("k", "a")).await;
        assert_eq!(refused.code(), "outcome-unknown");
        assert!(!refused.is_replay(), "the outer layer keeps no refusal of the inner one");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_layer_for_another_header_guards_by_its_own_key() {
    let policy = Policy::builder().header(HeaderName::from_static("payment-key")).required().build().unwrap();
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let (service, runs) = counting(done);
    let service = behind(&layer, behind(&layer.under(policy), service));
    let unnamed = send(&service, post("try-0", "a")).await;
    assert_eq!(unnamed.code(), "missing-key");
    for gateway in ["try-0", "try-1", "try-2"] {
        let mut request = post(gateway, "a");
        request.headers_mut().insert("payment-key", "payment".parse().unwrap());
        assert_eq!(send(&service, request).await.body, "done");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_handlers_word_reaches_every_layer_around_it() {
    let word =
        || Response::builder().status(200).extension(Ending::NotExecuted).body(text("sold out")).unwrap();
    let (service, runs) = counting(word);
    let layer = || IdempotencyLayer::new(MemoryStore::new());
    let service = behind(&layer(), behind(&layer(), service));
    for _ in 0..2 {
        assert!(!send(&service, post("k", "a")).await.is_replay());
    }
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}
