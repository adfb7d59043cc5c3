//! The published contract: served from the layers themselves, beside the routes they guard.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use http_body_util::BodyExt;
use idempotency_axum::{Contract, IdempotencyLayer, OnServerError, Policy};
use idempotency_store_memory::MemoryStore;
use serde_json::{Value, json};
use tower::ServiceExt;

fn layers() -> (IdempotencyLayer<MemoryStore>, IdempotencyLayer<MemoryStore>) {
    let orders = IdempotencyLayer::new(MemoryStore::new());
    let strict = Policy::builder().required().on_server_error(OnServerError::Hold).build().unwrap();
    let refunds = orders.under(strict);
    (orders, refunds)
}

#[tokio::test]
async fn the_contract_is_served_where_clients_look_and_says_what_the_layers_do() {
    let (orders, refunds) = layers();
    let contract = Contract::new().route("/orders", &orders).route("/refunds", &refunds);
    let document = contract.document();
    let app = Router::new()
        .route("/orders", post(async || "order").layer(orders))
        .route("/refunds", post(async || "refund").layer(refunds))
        .merge(contract.into_router());
    let request = Request::get("/.well-known/idempotency").body(Body::empty()).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["cache-control"], "public, max-age=3600");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let served: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(served, document);
    assert_eq!(served["specification"]["name"], "draft-ietf-httpapi-idempotency-key-header");
    assert_eq!(served["specification"]["version"], "07");
    assert_eq!(served["routes"][0]["path"], "/orders");
    assert_eq!(served["routes"][0]["key"]["required"], false);
    assert_eq!(served["routes"][1]["key"]["required"], true);
    assert_eq!(served["routes"][1]["statuses"]["in_doubt"], json!(["408", "5XX"]));

    let unkeyed = |path: &str| app.clone().oneshot(Request::post(path).body(Body::empty()).unwrap());
    assert_eq!(unkeyed("/orders").await.unwrap().status(), StatusCode::OK);
    assert_eq!(unkeyed("/refunds").await.unwrap().status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_service_says_how_long_caches_may_keep_it() {
    let app: Router = Contract::new().max_age(Duration::from_secs(60)).into_router();
    let request = Request::get(Contract::WELL_KNOWN).body(Body::empty()).unwrap();
    let response = app.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["cache-control"], "public, max-age=60");
}
