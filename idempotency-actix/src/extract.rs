//! What a handler can ask of the attempt it is.

use std::{
    future::{Ready, ready},
    ops::Deref,
};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest, HttpResponse, ResponseError, dev::Payload, http::StatusCode,
};
use idempotency_tower::{Code, Key, Refusal, problem_document};

use crate::convert;

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

impl FromRequest for Attempt {
    type Error = Unguarded;
    type Future = Ready<Result<Self, Unguarded>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let attempt = request.extensions().get::<idempotency_tower::Attempt>().cloned();
        ready(attempt.map(Self).ok_or_else(|| Unguarded::why(request)))
    }
}

/// The caller's key, unquoted and unescaped. Good for a unique column of your own; do not log it.
///
/// `Option<IdempotencyKey>` is `None` where no key guards the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(pub Key);

impl FromRequest for IdempotencyKey {
    type Error = Unguarded;
    type Future = Ready<Result<Self, Unguarded>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let attempt = Attempt::from_request(request, payload).into_inner();
        ready(attempt.map(|attempt| Self(attempt.key().clone())))
    }
}

/// The handler wants to know its attempt, and the request is not guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unguarded {
    /// It has no key: 400 `missing-key`.
    #[error("the request has no key")]
    WithoutKey,
    /// It has one, and no middleware took it: none stands around the route, its method is not among the guarded ones, or
    /// the store is down and the policy runs without a record. 500 `configuration-error`.
    #[error("the request has a key that no middleware took")]
    WithoutLayer,
}

impl Unguarded {
    fn why(request: &HttpRequest) -> Self {
        if request.headers().contains_key(IDEMPOTENCY_KEY) { Self::WithoutLayer } else { Self::WithoutKey }
    }

    fn refusal(self) -> Refusal {
        match self {
            Self::WithoutKey => Refusal::missing_key(IDEMPOTENCY_KEY),
            Self::WithoutLayer => Refusal::new(
                Code::ConfigurationError,
                "this route runs under a key only, and no middleware guards it now",
            ),
        }
    }
}

impl ResponseError for Unguarded {
    fn status_code(&self) -> StatusCode {
        self.error_response().status()
    }

    fn error_response(&self) -> HttpResponse {
        let (head, body) = problem_document(&self.refusal()).into_parts();
        convert::response(None, &head).set_body(body).map_into_boxed_body()
    }
}

const IDEMPOTENCY_KEY: &str = "idempotency-key";
