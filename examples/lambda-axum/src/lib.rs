//! An axum router on AWS Lambda: the layer is the same, and the store is one that all instances share.
//!
//! An instance is frozen once its answer is out. So nothing may be left to do then: the layer stores an answer before it
//! sends it, as long as `settle_wait`, which is longer here than the store ever takes.

use std::time::Duration;

use axum::{Json, Router, http::StatusCode, routing::post};
use idempotency_axum::{Early, IdempotencyLayer, Policy, PolicyError, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The routes, guarded on `store`.
///
/// # Errors
/// None with this policy.
pub fn app(store: impl Store) -> Result<Router, PolicyError> {
    let policy = Policy::builder()
        .required()
        // A frozen instance renews nothing: the lease is as long as a call may take.
        .lease(Duration::from_secs(30))
        .settle_wait(Duration::from_secs(20))
        .build()?;
    let idempotency = IdempotencyLayer::with_policy(store, policy);
    Ok(Router::new().route("/orders", post(create)).route_layer(idempotency))
}

#[derive(Deserialize)]
struct NewOrder {
    item: String,
}

#[derive(Serialize)]
struct Order {
    id: String,
    item: String,
}

async fn create(Early(Json(order)): Early<Json<NewOrder>>) -> (StatusCode, Json<Order>) {
    (StatusCode::CREATED, Json(Order { id: Uuid::new_v4().to_string(), item: order.item }))
}
