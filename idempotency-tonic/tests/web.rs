//! gRPC-Web through the same layer, translated outside it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use idempotency_store_memory::MemoryStore;
use idempotency_tonic::GrpcIdempotencyLayer;
use tonic::transport::Server;
use tonic_web::GrpcWebLayer;

use crate::{
    raw::{Raw, framed},
    shop::{listen, order, orders},
};

#[allow(dead_code, reason = "shared by several tests")]
mod raw;
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "shared by several tests"
)]
mod shop;

#[tokio::test]
async fn a_translated_call_is_guarded_like_any_other() {
    let (incoming, address) = listen().await;
    let (orders, site) = orders();
    let server = Server::builder()
        .accept_http1(true)
        .layer(GrpcWebLayer::new())
        .layer(GrpcIdempotencyLayer::new(MemoryStore::new()))
        .add_service(orders);
    tokio::spawn(server.serve_with_incoming(incoming));
    let web = Raw::web(address);
    let call = || web.clone().send("/shop.Orders/Create", "k", framed(&order("tea")));
    let (first, replay) = (call().await, call().await);
    assert!(!first.is_replay() && replay.is_replay());
    assert_eq!(first.status, 200);
    assert_eq!(first.body, replay.body);
    assert!(String::from_utf8_lossy(&first.body).contains("grpc-status:0"), "{:?}", first.body);
    // The same operation, asked for over gRPC.
    let native = Raw::to(address).send("/shop.Orders/Create", "k", framed(&order("tea"))).await;
    assert!(native.is_replay());
    assert!(first.body.starts_with(&native.body));
    let other = web.clone().send("/shop.Orders/Create", "k", framed(&order("coffee"))).await;
    let told = format!("{:?} {}", other.headers, String::from_utf8_lossy(&other.body));
    assert!(told.contains("grpc-status") && told.contains('9'), "{told}");
    assert_eq!(site.runs(), 1);
}

#[tokio::test]
async fn an_untranslated_call_is_refused_rather_than_guessed_at() {
    let (incoming, address) = listen().await;
    let (orders, site) = orders();
    let server = Server::builder()
        .accept_http1(true)
        .layer(GrpcIdempotencyLayer::new(MemoryStore::new()))
        .layer(GrpcWebLayer::new())
        .add_service(orders);
    tokio::spawn(server.serve_with_incoming(incoming));
    let refused = Raw::web(address).send("/shop.Orders/Create", "k", framed(&order("tea"))).await;
    assert_eq!(refused.headers["grpc-status"], "13");
    assert_eq!(site.runs(), 0);
}
