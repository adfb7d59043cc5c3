//! What a handler can ask of the attempt it is.

use std::{convert::Infallible, ops::Deref};

use axum::{
    body::Body,
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, request::Parts};
use idempotency_tower::{Code, Key, Refusal, problem_document};

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
        parts.extensions.get().cloned().map(Self).ok_or_else(|| Unguarded::why(&parts.headers))
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

/// The handler wants to know its attempt, and the request is not guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unguarded {
    /// It has no key: 400 `missing-key`.
    WithoutKey,
    /// It has one, and no layer took it: none stands around the route, its method is not among the guarded ones, or the
    /// store is down and the policy runs without a record. 500 `configuration-error`.
    WithoutLayer,
}

impl Unguarded {
    fn why(headers: &HeaderMap) -> Self {
        if headers.contains_key(IDEMPOTENCY_KEY) { Self::WithoutLayer } else { Self::WithoutKey }
    }

    fn refusal(self) -> Refusal {
        match self {
            Self::WithoutKey => Refusal::missing_key(IDEMPOTENCY_KEY),
            Self::WithoutLayer => Refusal::new(
                Code::ConfigurationError,
                "this route runs under a key only, and no layer guards it now",
            ),
        }
    }
}

impl IntoResponse for Unguarded {
    fn into_response(self) -> Response {
        problem_document(&self.refusal()).map(Body::from)
    }
}

const IDEMPOTENCY_KEY: &str = "idempotency-key";
