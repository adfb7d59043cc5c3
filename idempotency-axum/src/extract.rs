//! What a handler can ask of the attempt it is.

use std::{convert::Infallible, ops::Deref};

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use idempotency_tower::Key;

/// The attempt this run is: its key, its fence, whether it took over from a run that never said how it ended.
///
/// `Option<Attempt>` is `None` where no key guards the request.
#[derive(Debug, Clone)]
pub struct Attempt(idempotency_tower::Attempt);

impl Deref for Attempt {
    type Target = idempotency_tower::Attempt;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Attempt {
    type Rejection = Unguarded;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Unguarded> {
        parts.extensions.get().cloned().map(Self).ok_or(Unguarded)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Attempt {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned().map(Self))
    }
}

/// The caller's key, unquoted and unescaped. Good for a unique column of your own; do not log it.
///
/// `Option<IdempotencyKey>` is `None` where no key guards the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub Key);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Unguarded;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Unguarded> {
        let attempt = <Attempt as FromRequestParts<S>>::from_request_parts(parts, state).await?;
        Ok(Self(attempt.key().clone()))
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Option<Self>, Infallible> {
        let attempt = <Attempt as OptionalFromRequestParts<S>>::from_request_parts(parts, state).await?;
        Ok(attempt.map(|attempt| Self(attempt.key().clone())))
    }
}

/// The handler wants to know its attempt, and the request is not guarded: it has no key, its method is not among the
/// guarded ones, or no layer stands around the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unguarded;

impl IntoResponse for Unguarded {
    fn into_response(self) -> Response {
        (
            StatusCode::BAD_REQUEST,
            "this route needs an Idempotency-Key header and an idempotency layer around it",
        )
            .into_response()
    }
}
