//! The routes, each behind its layer, and the documents beside them.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{Next, from_fn},
    response::Response,
    routing::{get, post},
};
use idempotency_axum::{Contract, Early, Store, openapi::Undescribed};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{
    openapi,
    policies::{Customer, Layers, MAX_EXPORT_BYTES},
};

/// What was written and paid, line by line.
pub type Books = Arc<Mutex<Vec<String>>>;

/// A payment beyond this is more than the bank's line can carry: it answers nothing.
const BANK_ANSWERS_UP_TO: u64 = 1_000_000;

/// The routes, guarded, with the contract and the OpenAPI document.
///
/// # Errors
/// [`Undescribed`] when the OpenAPI document lacks a route.
pub fn app<S: Store>(books: Books, layers: &Layers<S>) -> Result<Router, Undescribed> {
    let Layers { comments, payments, exports } = layers;
    let contract = Contract::new()
        .route("/comments", comments)
        .route("/payments", payments)
        .route("/exports", exports)
        .into_router();
    let bodies = DefaultBodyLimit::max(MAX_EXPORT_BYTES); // axum's own would be 2 MB
    let description = openapi::document(layers)?;
    Ok(Router::new()
        .route("/comments", post(comment).layer(comments.clone()))
        // The last layer is the outermost: the scope reads whom authentication verified.
        .route("/payments", post(pay).layer(payments.clone()).layer(from_fn(authenticate)))
        .route("/exports", post(export).layer::<_, Infallible>(bodies).layer(exports.clone()))
        .with_state(books)
        .route("/openapi.json", get(async move || Json(description)))
        .merge(contract))
}

/// `Authorization: Bearer alice` is Alice. A real service verifies a token here.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let authorization = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let name = authorization.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    if let Some(name) = name {
        request.extensions_mut().insert(Customer(name));
    }
    next.run(request).await
}

#[derive(Deserialize)]
struct NewComment {
    text: String,
}

#[derive(Serialize)]
struct Comment {
    id: usize,
    text: String,
}

async fn comment(
    State(books): State<Books>,
    Early(Json(comment)): Early<Json<NewComment>>,
) -> (StatusCode, Json<Comment>) {
    let mut books = books.lock().await;
    books.push("comment".to_owned());
    (StatusCode::CREATED, Json(Comment { id: books.len(), text: comment.text }))
}

#[derive(Deserialize)]
struct Payment {
    amount: u64,
}

async fn pay(
    State(books): State<Books>,
    Early(Json(payment)): Early<Json<Payment>>,
) -> Result<(StatusCode, String), StatusCode> {
    let mut books = books.lock().await;
    books.push("payment".to_owned());
    if payment.amount > BANK_ANSWERS_UP_TO {
        return Err(StatusCode::BAD_GATEWAY); // it may have paid
    }
    Ok((StatusCode::CREATED, format!("paid {}", payment.amount)))
}

/// One line for each id.
async fn export(State(books): State<Books>, Early(Json(ids)): Early<Json<Vec<u64>>>) -> String {
    books.lock().await.push("export".to_owned());
    ids.into_iter().map(|id| format!("{id},exported\n")).collect()
}
