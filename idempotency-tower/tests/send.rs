//! What a guarded request becomes may go to any thread: a door for handlers that stay on theirs must not take that away.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};

fn sent<T: Send + 'static>(value: T) -> T {
    value
}

#[tokio::test]
async fn layer_service_future_and_body_may_go_to_another_thread() {
    let answer = async |_: Request<RequestBody<Full<Bytes>>>| {
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("done")))
    };
    let layer = sent(IdempotencyLayer::new(MemoryStore::new()));
    let mut service = sent(layer.layer(service_fn(answer)));
    let request = Request::post("/").header("idempotency-key", "k").body(Full::<Bytes>::default()).unwrap();
    let running = sent(service.ready().await.unwrap().call(request));
    let response = tokio::spawn(running).await.unwrap().unwrap();
    let body = sent(response.into_body());
    assert_eq!(body.collect().await.unwrap().to_bytes(), "done");
}
