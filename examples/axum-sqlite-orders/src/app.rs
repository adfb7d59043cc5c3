//! The API: one route, its handler, and the line that makes its retries safe.

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use idempotency_axum::{Attempt, Early, IdempotencyLayer, Policy, PolicyBuilder, Store};

use crate::{
    customer::Customer,
    orders::{NewOrder, Order, Orders, PlaceError},
};

/// The routes, guarded.
pub fn app(orders: Orders, idempotency: IdempotencyLayer<impl Store>) -> Router {
    routes(orders).route_layer(idempotency)
}

/// The routes without their guard.
pub fn routes(orders: Orders) -> Router {
    Router::new().route("/orders", post(create)).with_state(orders)
}

/// What the guard does: the defaults, and every order needs a key.
///
/// By default a key is free again after a 5xx or a panic, and is taken over when its server died: the handler may run
/// a second time. That is harmless here, because the table takes one order for each key. A handler whose effect has no
/// such unique key, a card payment say, sets `OnServerError::Hold` and `OnLapse::Hold`.
pub fn policy() -> PolicyBuilder {
    Policy::builder().required()
}

/// Places an order. `Early` frees the key when the JSON is bad, so that the client may mend it and try again.
async fn create(
    State(orders): State<Orders>,
    customer: Customer,
    attempt: Attempt,
    Early(Json(order)): Early<Json<NewOrder>>,
) -> Result<(StatusCode, Json<Order>), PlaceError> {
    let order = orders.place(&customer, attempt.key(), order).await?;
    Ok((StatusCode::CREATED, Json(order)))
}

impl IntoResponse for PlaceError {
    fn into_response(self) -> Response {
        match self {
            Self::KeyTaken => (StatusCode::CONFLICT, self.to_string()).into_response(),
            Self::Database(error) => {
                tracing::error!(%error, "an order could not be placed");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
