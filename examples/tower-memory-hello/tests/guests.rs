//! Guests who sign, who sign again, and who hang up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::{net::TcpListener, sync::oneshot};
use tower::{Service, ServiceExt};
use tower_memory_hello::{book::GuestBook, server::serve};

fn signing(key: &str, name: &'static str) -> Request<Full<Bytes>> {
    Request::post("/guests").header("idempotency-key", key).body(Full::from(name)).unwrap()
}

/// Status, whether it is a replay, and the text.
async fn send(book: &GuestBook, request: Request<Full<Bytes>>) -> (StatusCode, bool, Bytes) {
    let response = book.service().oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let replayed = head.headers.contains_key("idempotency-replayed");
    (head.status, replayed, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn who_signs_twice_is_one_guest() {
    let book = GuestBook::open().unwrap();
    let hello = Bytes::from("hello, Ada, you are guest 1");
    assert_eq!(send(&book, signing("k", "Ada")).await, (StatusCode::CREATED, false, hello.clone()));
    assert_eq!(send(&book, signing("k", "Ada")).await, (StatusCode::CREATED, true, hello));
    assert_eq!(send(&book, signing("k", "Grace")).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(send(&book, signing("k-2", "Ada")).await.2, "hello, Ada, you are guest 2");
    assert_eq!(book.len(), 2);
}

#[tokio::test]
async fn without_a_key_nobody_signs() {
    let book = GuestBook::open().unwrap();
    let unkeyed = Request::post("/guests").body(Full::from("Ada")).unwrap();
    assert_eq!(send(&book, unkeyed).await.0, StatusCode::BAD_REQUEST);
    assert!(book.is_empty());
}

#[tokio::test]
async fn what_did_not_happen_leaves_the_key_free() {
    let book = GuestBook::open().unwrap();
    assert_eq!(send(&book, signing("k", " ")).await.0, StatusCode::BAD_REQUEST);
    let mut lost = signing("k", "Ada");
    *lost.uri_mut() = "/guest".parse().unwrap();
    assert_eq!(send(&book, lost).await.0, StatusCode::NOT_FOUND);
    assert_eq!(send(&book, signing("k", "Ada")).await.0, StatusCode::CREATED);
    assert_eq!(book.len(), 1);
}

#[tokio::test]
async fn who_hangs_up_has_signed_all_the_same() {
    let book = GuestBook::open().unwrap();
    let mut service = book.service();
    let mut call = Box::pin(service.ready().await.unwrap().call(signing("k", "Ada")));
    // Polled once: the claim is on its way, and the caller is gone.
    let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx))).await;
    drop(call);
    assert_eq!(book.close(Duration::from_secs(10)).await.left, 0);
    assert_eq!(send(&book, signing("k", "Ada")).await.2, "hello, Ada, you are guest 1");
    assert_eq!(book.len(), 1);
}

#[tokio::test]
async fn the_server_answers_over_a_socket_and_stops_when_asked() {
    let book = GuestBook::open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/guests", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn({
        let book = book.clone();
        async move { serve(&book, listener, async { stopped.await.unwrap() }).await }
    });
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    for replayed in [false, true] {
        let request = Request::post(&url).header("idempotency-key", "k").body(Full::from("Ada")).unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        assert_eq!(response.headers().contains_key("idempotency-replayed"), replayed);
    }
    stop.send(()).unwrap();
    assert_eq!(serving.await.unwrap().unwrap(), 0);
    assert_eq!(book.len(), 1);
}
