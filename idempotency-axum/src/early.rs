//! Extractors whose rejection frees the key.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;
use idempotency_tower::Ending;

/// An extractor that says of its own rejection that nothing was executed, so that a client may mend the request and
/// send it again under the same key.
///
/// A plain `Json<T>` answers a malformed body with 400 or 422, and the layer keeps those as it must: it cannot tell
/// them from a handler's. `Early<Json<T>>` is the same extractor with that said.
///
/// ```
/// use axum::Json;
/// use idempotency_axum::Early;
///
/// async fn create(Early(Json(order)): Early<Json<Vec<u32>>>) -> String {
///     format!("{} items", order.len())
/// }
/// # let _: axum::Router = axum::Router::new().route("/orders", axum::routing::post(create));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early<E>(pub E);

/// The rejection of the extractor inside an [`Early`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyRejection<R>(pub R);

impl<R: IntoResponse> IntoResponse for EarlyRejection<R> {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        response.extensions_mut().insert(Ending::NotExecuted);
        response
    }
}

impl<S: Send + Sync, E: FromRequest<S>> FromRequest<S> for Early<E> {
    type Rejection = EarlyRejection<E::Rejection>;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        E::from_request(request, state).await.map(Self).map_err(EarlyRejection)
    }
}

impl<S: Send + Sync, E: FromRequestParts<S>> FromRequestParts<S> for Early<E> {
    type Rejection = EarlyRejection<E::Rejection>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        E::from_request_parts(parts, state).await.map(Self).map_err(EarlyRejection)
    }
}
