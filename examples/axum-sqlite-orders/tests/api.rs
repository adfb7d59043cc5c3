//! The API, request by request.

#[cfg(test)]
mod shop;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use serde_json::json;
use shop::Shop;

const TEA: &str = r#"{"item":"tea","quantity":2}"#;

#[tokio::test]
async fn a_retry_gets_the_first_answer_and_orders_nothing() {
    let shop = Shop::open().await;
    let first = shop.post(Some("k"), TEA).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert!(!first.replayed);
    assert_eq!(first.json(), json!({ "id": 1, "item": "tea", "quantity": 2 }));

    let retry = shop.post(Some("k"), TEA).await;
    assert_eq!(retry.status, StatusCode::CREATED);
    assert!(retry.replayed);
    assert_eq!(retry.text, first.text);
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn two_keys_are_two_orders() {
    let shop = Shop::open().await;
    shop.post(Some("k1"), TEA).await;
    assert_eq!(shop.post(Some("k2"), TEA).await.json()["id"], 2);
    assert_eq!(shop.orders_written().await, 2);
}

#[tokio::test]
async fn another_payload_under_the_key_is_refused_by_its_part() {
    let shop = Shop::open().await;
    shop.post(Some("k"), TEA).await;
    let other = shop.post(Some("k"), r#"{"item":"tea","quantity":3}"#).await;
    assert_eq!(other.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(other.json()["code"], "fingerprint-mismatch");
    assert_eq!(other.json()["mismatch"], json!(["body"]));
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn an_order_needs_a_key() {
    let shop = Shop::open().await;
    let refused = shop.post(None, TEA).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["code"], "missing-key");
    assert_eq!(shop.orders_written().await, 0);
}

#[tokio::test]
async fn bad_json_frees_the_key() {
    let shop = Shop::open().await;
    assert_eq!(shop.post(Some("k"), r#"{"item":"#).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(shop.post(Some("k"), r#"{"item":"tea"}"#).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let mended = shop.post(Some("k"), TEA).await;
    assert_eq!(mended.status, StatusCode::CREATED);
    assert!(!mended.replayed);
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn without_a_customer_the_key_stays_free() {
    let shop = Shop::open().await;
    let request = Request::post("/orders")
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", "k")
        .body(Body::from(TEA));
    assert_eq!(shop.send(request.unwrap()).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(shop.post(Some("k"), TEA).await.status, StatusCode::CREATED);
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn an_order_written_by_a_run_that_died_is_found() {
    let shop = Shop::open().await;
    shop.place("alice", 2).await;
    let retry = shop.post(Some("k"), TEA).await;
    assert_eq!(retry.status, StatusCode::CREATED);
    assert_eq!(retry.json()["id"], 1);
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn a_key_older_than_its_record_places_no_other_order() {
    let shop = Shop::open().await;
    shop.place("alice", 3).await;
    let other = shop.post(Some("k"), TEA).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(shop.orders_written().await, 1);
}

#[tokio::test]
async fn a_key_older_than_its_record_shows_nobody_elses_order() {
    let shop = Shop::open().await;
    shop.place("bob", 2).await;
    assert_eq!(shop.post(Some("k"), TEA).await.json()["id"], 2);
    assert_eq!(shop.orders_written().await, 2);
}
