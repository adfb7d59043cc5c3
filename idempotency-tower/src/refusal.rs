//! Refusals as HTTP responses: problem documents (RFC 9457).

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_api_problem::HttpApiProblem;
use idempotency_core::{
    Part,
    profile::http::{Refusal, problems},
};

use crate::{
    Verdict,
    body::{Held, ResponseBody},
};

/// The problem document that says why a request was neither run nor replayed.
pub(crate) fn refuse<B>(refusal: &Refusal) -> Response<ResponseBody<B>> {
    let status = StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let held = Held { bytes: Bytes::from(document(refusal, status)), trailers: None };
    let mut response = Response::new(ResponseBody::held(held));
    *response.status_mut() = status;
    response.extensions_mut().insert(Verdict::Refused(refusal.code));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(location) =
        refusal.location.clone().and_then(|value| HeaderValue::from_maybe_shared(value).ok())
    {
        headers.insert(header::LOCATION, location);
    }
    response
}

fn document(refusal: &Refusal, status: StatusCode) -> Vec<u8> {
    let mut problem = HttpApiProblem::new(status)
        .type_url(format!("{}{}", problems::TYPE_BASE, refusal.code))
        .title(refusal.code.title())
        .detail(refusal.detail.as_ref())
        .value("code", &refusal.code.name());
    let differing: Vec<_> = refusal.differing.iter().map(Part::name).collect();
    if !differing.is_empty() {
        problem.set_value("mismatch", &differing);
    }
    if let Some(original_status) = refusal.original_status {
        problem.set_value("original_status", &original_status);
    }
    problem.json_bytes()
}
