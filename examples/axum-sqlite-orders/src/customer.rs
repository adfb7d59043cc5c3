//! Who orders.

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, header::AUTHORIZATION, request::Parts},
};

/// The customer a request comes from: `Authorization: Bearer alice` is Alice.
///
/// A real service takes a name here that its authentication verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer(pub String);

impl<S: Sync> FromRequestParts<S> for Customer {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let authorization = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let name = authorization.and_then(|value| value.strip_prefix("Bearer "));
        name.map(|name| Self(name.to_owned())).ok_or(StatusCode::UNAUTHORIZED)
    }
}
