//! Events as API Gateway sends them, through the adapter that the runtime uses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use axum::Router;
use idempotency_store_memory::MemoryStore;
use lambda_axum::app;
use lambda_http::{Adapter, Context, LambdaEvent, request::LambdaRequest};
use serde_json::{Value, json};
use tower::ServiceExt;

fn event(key: Option<&str>, body: &str) -> Value {
    let mut headers = json!({ "content-type": "application/json", "host": "orders.example" });
    if let Some(key) = key {
        headers["idempotency-key"] = key.into();
    }
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/orders",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "1",
            "apiId": "orders",
            "domainName": "orders.example",
            "domainPrefix": "orders",
            "http": { "method": "POST", "path": "/orders", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test" },
            "requestId": "id",
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000_u64
        },
        "body": body,
        "isBase64Encoded": false
    })
}

/// What the gateway gets back.
async fn send(app: &Router, event: Value) -> Value {
    let request: LambdaRequest = serde_json::from_value(event).unwrap();
    let answer =
        Adapter::from(app.clone()).oneshot(LambdaEvent::new(request, Context::default())).await.unwrap();
    serde_json::to_value(answer).unwrap()
}

#[tokio::test]
async fn a_retry_that_meets_another_instance_is_answered_as_the_first_try() {
    let store = MemoryStore::new();
    let instances = [app(store.clone()).unwrap(), app(store).unwrap()];
    let order = || event(Some("k"), r#"{"item":"tea"}"#);
    let first = send(&instances[0], order()).await;
    let retry = send(&instances[1], order()).await;
    assert_eq!((&first["statusCode"], &retry["statusCode"]), (&json!(201), &json!(201)));
    assert_eq!(first["headers"]["idempotency-replayed"], Value::Null);
    assert_eq!(retry["headers"]["idempotency-replayed"], "true");
    assert_eq!(first["body"], retry["body"]);
    assert!(first["body"].as_str().unwrap().contains("tea"));
    let other = send(&instances[1], event(Some("k"), r#"{"item":"cake"}"#)).await;
    assert_eq!(other["statusCode"], 422);
}

#[tokio::test]
async fn an_event_without_a_key_is_refused() {
    let app = app(MemoryStore::new()).unwrap();
    let refused = send(&app, event(None, r#"{"item":"tea"}"#)).await;
    assert_eq!(refused["statusCode"], 400);
    assert!(refused["body"].as_str().unwrap().contains("missing-key"));
}
