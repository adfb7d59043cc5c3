//! Who pays.

use actix_web::{
    Error, HttpMessage,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    error::ErrorUnauthorized,
    http::header::AUTHORIZATION,
    middleware::Next,
};

/// A customer who was authenticated.
#[derive(Debug, Clone)]
pub struct Customer(
    /// The customer's name.
    pub String,
);

/// Lets the customers of this example in, by `Authorization: Bearer <name>-secret`, and nobody else.
///
/// # Errors
/// 401 for everybody else.
pub async fn authenticate<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let name = token.and_then(|token| token.strip_prefix("Bearer ")?.strip_suffix("-secret"));
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Err(ErrorUnauthorized("who are you?"));
    };
    let customer = Customer(name.to_owned());
    request.extensions_mut().insert(customer);
    next.call(request).await
}
