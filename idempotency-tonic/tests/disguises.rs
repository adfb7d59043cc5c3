//! Calls that do not look like gRPC's, which tonic runs all the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use http::Method;
use idempotency_store_memory::MemoryStore;
use idempotency_tonic::{GrpcIdempotencyLayer, Policy};
use tonic::transport::Server;

use crate::{
    raw::{Raw, framed},
    shop::{Shop, keyed, listen, order, orders},
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

const CREATE: &str = "/shop.Orders/Create";

#[tokio::test]
async fn no_content_type_makes_a_call_run_unguarded() {
    let shop = Shop::open().await;
    let raw = Raw::to(shop.address);
    for kind in ["application/json", "text/plain", "application/grp", "application/x-grpc", ""] {
        let call = raw.clone().disguised(Method::POST, kind);
        assert_eq!(call.send(CREATE, "k", framed(&order("tea"))).await.status, 415, "{kind:?}");
    }
    assert_eq!(shop.site.runs(), 0);
    let spelled = raw.disguised(Method::POST, "Application/GRPC+proto");
    let call = || spelled.clone().send(CREATE, "k", framed(&order("tea")));
    let (first, replay) = (call().await, call().await);
    assert!(!first.is_replay() && replay.is_replay());
    assert_eq!(shop.site.runs(), 1);
}

#[tokio::test]
async fn no_http_method_makes_a_call_run_unguarded_nor_does_a_policy_of_other_methods() {
    let put_alone = Policy::builder().methods([Method::PUT]).build().unwrap();
    let shop = Shop::under(put_alone).await;
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let call = Raw::to(shop.address).disguised(method.clone(), "application/grpc");
        call.send(CREATE, "k", framed(&order("tea"))).await;
        assert_eq!(shop.site.runs(), 1, "{method}");
    }
}

#[tokio::test]
async fn a_key_that_is_required_is_required_of_every_kind_of_call() {
    let shop = Shop::under(Policy::builder().required().build().unwrap()).await;
    for kind in ["application/json", "application/grpc-web", "application/grpc-web+proto"] {
        let call = Raw::to(shop.address).disguised(Method::POST, kind);
        call.send_unkeyed(CREATE, framed(&order("tea"))).await;
    }
    assert_eq!(shop.site.runs(), 0);
}

#[tokio::test]
async fn what_passes_one_layer_is_guarded_by_the_next() {
    let (incoming, address) = listen().await;
    let (orders, site) = orders();
    let server = Server::builder()
        .layer(GrpcIdempotencyLayer::new(MemoryStore::new()).safe(CREATE))
        .layer(GrpcIdempotencyLayer::new(MemoryStore::new()))
        .add_service(orders);
    tokio::spawn(server.serve_with_incoming(incoming));
    let client = shop::Client::new(shop::channel(address).await);
    for _ in 0..2 {
        assert_eq!(client.create(keyed(order("tea"))).await.unwrap().into_inner().run, 1);
    }
    assert_eq!(site.runs(), 1);
}
