//! The layer on axum routers: nested, merged, with fallbacks, and the extractors behind it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{Query, State},
    http::{Request, StatusCode},
    response::Response,
    routing::post,
};
use http_body_util::BodyExt;
use idempotency_axum::{Attempt, Early, Ending, IdempotencyKey, IdempotencyLayer, Verdict};
use idempotency_store_memory::MemoryStore;
use tower::ServiceExt;

type Runs = Arc<AtomicUsize>;

fn layer() -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn send(app: &Router, request: Request<Body>) -> (u16, bool, String) {
    let (head, body) = open(app, request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let replayed = head.headers.contains_key("idempotency-replayed");
    (head.status.as_u16(), replayed, String::from_utf8(body.to_vec()).unwrap())
}

async fn open(app: &Router, request: Request<Body>) -> Response {
    app.clone().oneshot(request).await.unwrap()
}

fn keyed(path: &str, body: &'static str) -> Request<Body> {
    Request::post(path).header("idempotency-key", "k").body(Body::from(body)).unwrap()
}

fn json(path: &str, body: &'static str) -> Request<Body> {
    let mut request = keyed(path, body);
    request.headers_mut().insert("content-type", "application/json".parse().unwrap());
    request
}

#[tokio::test]
async fn one_layer_on_two_nested_routers_never_answers_for_the_other() {
    let layer = layer();
    let part = |answer: &'static str| {
        Router::new().route("/create", post(async move || answer)).layer(layer.clone())
    };
    let app = Router::new().nest("/orders", part("order 1")).nest("/refunds", part("refund 1"));
    assert_eq!(send(&app, keyed("/orders/create", "{}")).await, (200, false, "order 1".into()));
    let (status, _, problem) = send(&app, keyed("/refunds/create", "{}")).await;
    assert_eq!(status, 422);
    assert!(problem.contains("\"path\"") && !problem.contains("order 1"), "{problem}");
    assert_eq!(send(&app, keyed("/orders/create", "{}")).await, (200, true, "order 1".into()));
}

#[tokio::test]
async fn the_same_route_is_the_same_operation_wherever_the_layer_stands() {
    let store = MemoryStore::new();
    let runs = Runs::default();
    let handler = async |State(runs): State<Runs>| runs.fetch_add(1, Ordering::SeqCst).to_string();
    let routes = || Router::new().route("/create", post(handler)).with_state(Arc::clone(&runs));
    let inside = Router::new().nest("/orders", routes().layer(IdempotencyLayer::new(store.clone())));
    let outside = Router::new().nest("/orders", routes()).layer(IdempotencyLayer::new(store));
    assert_eq!(send(&inside, keyed("/orders/create", "{}")).await, (200, false, "0".into()));
    assert_eq!(send(&outside, keyed("/orders/create", "{}")).await, (200, true, "0".into()));
}

#[tokio::test]
async fn two_layers_around_one_route_guard_it_once() {
    let app = Router::new().route("/", post(async || "done")).layer(layer()).layer(layer());
    assert_eq!(send(&app, keyed("/", "")).await, (200, false, "done".into()));
    assert_eq!(send(&app, keyed("/", "")).await, (200, true, "done".into()));
}

#[tokio::test]
async fn a_route_layer_claims_nothing_for_what_matches_no_route() {
    let app = Router::new().route("/orders", post(async || "done")).route_layer(layer());
    assert_eq!(send(&app, keyed("/nowhere", "")).await.0, 404);
    assert_eq!(send(&app, keyed("/orders", "")).await, (200, false, "done".into()));
}

#[tokio::test]
async fn extractors_tell_the_attempt_where_there_is_one() {
    let handler = async |attempt: Option<Attempt>, key: Option<IdempotencyKey>| match (attempt, key) {
        (Some(attempt), Some(IdempotencyKey(key))) => {
            assert_eq!(attempt.key(), &key);
            format!("{} run {}", key.as_str(), attempt.number())
        }
        _ => "unguarded".to_owned(),
    };
    let required = async |attempt: Attempt, IdempotencyKey(_): IdempotencyKey| attempt.fence().to_string();
    let app = Router::new().route("/", post(handler)).route("/required", post(required)).layer(layer());
    assert_eq!(send(&app, keyed("/", "")).await.2, "k run 1");
    let unkeyed = |path: &str| Request::post(path).body(Body::empty()).unwrap();
    assert_eq!(send(&app, unkeyed("/")).await.2, "unguarded");
    let (status, _, problem) = send(&app, unkeyed("/required")).await;
    assert!(status == 400 && problem.contains("missing-key"), "{problem}");
    let without_layer = Router::new().route("/required", post(required));
    let (status, _, problem) = send(&without_layer, keyed("/required", "")).await;
    assert!(status == 500 && problem.contains("configuration-error"), "{problem}");
}

#[tokio::test]
async fn an_early_rejection_frees_the_key_and_a_plain_one_is_kept() {
    let plain = async |Json(_): Json<Vec<u32>>| "done";
    let early =
        async |Early(_): Early<Query<Vec<(String, u32)>>>, Early(Json(_)): Early<Json<Vec<u32>>>| "done";
    let app = Router::new().route("/plain", post(plain)).route("/early", post(early));
    let plain = app.clone().layer(layer());
    assert_eq!(send(&plain, json("/plain", "[oops")).await.0, 400);
    assert_eq!(send(&plain, json("/plain", "[1]")).await.0, 422, "the layer cannot know that nothing ran");
    let early = app.layer(layer());
    assert_eq!(send(&early, json("/early?n=x", "[1]")).await.0, 400);
    assert_eq!(send(&early, json("/early", "[oops")).await.0, 400);
    assert_eq!(send(&early, json("/early", "[1]")).await, (200, false, "done".into()));
    assert_eq!(send(&early, json("/early", "[1]")).await, (200, true, "done".into()));
}

#[tokio::test]
async fn a_handler_says_its_ending_by_an_extension() {
    let handler = async || (StatusCode::CONFLICT, Extension(Ending::NotExecuted), "sold out");
    let app = Router::new().route("/", post(handler)).layer(layer());
    assert_eq!(send(&app, keyed("/", "a")).await, (409, false, "sold out".into()));
    assert_eq!(send(&app, keyed("/", "b")).await, (409, false, "sold out".into()));
}

#[tokio::test]
async fn layers_around_see_the_verdict() {
    let app = Router::new().route("/", post(async || "done")).layer(layer());
    let verdict = async || *open(&app, keyed("/", "")).await.extensions().get::<Verdict>().unwrap();
    assert!(matches!(verdict().await, Verdict::Ran { attempt: 1, .. }));
    assert_eq!(verdict().await, Verdict::Replayed);
}
