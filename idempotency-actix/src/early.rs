//! Extractors whose rejection frees the key.

use std::fmt;

use actix_web::{
    Error, FromRequest, HttpRequest, HttpResponse, ResponseError, dev::Payload, http::StatusCode,
};
use futures_util::{TryFutureExt, future::MapErr};
use idempotency_tower::Ending;

/// An extractor that says of its own rejection that nothing was executed, so that a client may mend the request and
/// send it again under the same key.
///
/// A plain `Json<T>` answers a malformed body with 400, and the middleware keeps that as it must: it cannot tell it from
/// a handler's. `Early<Json<T>>` is the same extractor with that said.
///
/// ```
/// use actix_web::{App, web};
/// use idempotency_actix::Early;
///
/// async fn create(Early(order): Early<web::Json<Vec<u32>>>) -> String {
///     format!("{} items", order.len())
/// }
///
/// let app = App::new().route("/orders", web::post().to(create));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early<E>(pub E);

impl<E: FromRequest> FromRequest for Early<E> {
    type Error = EarlyRejection;
    type Future = MapOk<E>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let rejected: fn(E::Error) -> EarlyRejection = |error| EarlyRejection(error.into());
        E::from_request(request, payload).map_ok(Self as fn(E) -> Self).map_err(rejected)
    }
}

type MapOk<E> = MapErr<
    futures_util::future::MapOk<<E as FromRequest>::Future, fn(E) -> Early<E>>,
    fn(<E as FromRequest>::Error) -> EarlyRejection,
>;

/// The rejection of the extractor inside an [`Early`].
#[derive(Debug)]
pub struct EarlyRejection(Error);

impl EarlyRejection {
    /// What the extractor said.
    pub const fn inner(&self) -> &Error {
        &self.0
    }
}

impl ResponseError for EarlyRejection {
    fn status_code(&self) -> StatusCode {
        self.0.as_response_error().status_code()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = self.0.error_response();
        response.extensions_mut().insert(Ending::NotExecuted);
        response
    }
}

impl fmt::Display for EarlyRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
