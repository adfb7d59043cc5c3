//! How long a copy waits for the first request's answer.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use idempotency_core::profile::http::preferred_wait;

use crate::Policy;

const PREFER: HeaderName = HeaderName::from_static("prefer");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The wait of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) limit: Duration,
    preferred: bool,
}

impl Patience {
    /// What the policy allows, or less where the caller prefers less (`Prefer: wait=N`, RFC 7240).
    pub(crate) fn of(policy: &Policy, headers: &HeaderMap) -> Option<Self> {
        let cap = policy.wait?;
        let preferred = preferred_wait(headers.get_all(PREFER).iter().map(HeaderValue::as_bytes));
        Some(Self { limit: preferred.unwrap_or(cap).min(cap), preferred: preferred.is_some() })
    }

    /// Tells a caller that preferred a wait the one it had.
    pub(crate) fn applied<B>(self, mut answer: Response<B>) -> Response<B> {
        if self.preferred
            && let Ok(applied) = HeaderValue::try_from(format!("wait={}", self.limit.as_secs()))
        {
            answer.headers_mut().insert(PREFERENCE_APPLIED, applied);
        }
        answer
    }
}
