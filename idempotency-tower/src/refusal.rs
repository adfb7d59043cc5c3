//! Refusals as HTTP responses: problem documents (RFC 9457), or what a policy makes of them.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_api_problem::HttpApiProblem;
use idempotency_core::{
    Part,
    profile::http::{Code, Ending, Refusal},
};

use crate::{
    Policy, Verdict,
    body::{Held, ResponseBody},
    error::caught,
};

/// Makes a refusal's response, in place of the problem document.
///
/// Any function of a [`Refusal`] is one. `Retry-After`, `Link`, `Location` and `Cache-Control: no-store` are added to what it
/// makes unless it set them.
pub trait Render: Send + Sync + 'static {
    /// The response that tells `refusal`. It should keep the refusal's status and code: clients decide by them.
    fn render(&self, refusal: &Refusal) -> Response<Bytes>;
}

impl<F> Render for F
where
    F: Fn(&Refusal) -> Response<Bytes> + Send + Sync + 'static,
{
    fn render(&self, refusal: &Refusal) -> Response<Bytes> {
        self(refusal)
    }
}

/// The problem document (RFC 9457) of a refusal, as a default policy answers with it: for code outside the layer that
/// refuses in its words.
pub fn problem_document(refusal: &Refusal) -> Response<Bytes> {
    let mut response = problem(&Policy::default(), refusal);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The response that says why a request was neither run nor replayed.
pub(crate) fn refuse<B>(policy: &Policy, refusal: &Refusal) -> Response<ResponseBody<B>> {
    let own = policy.render.as_ref().and_then(|render| caught("render", || render.render(refusal)).ok());
    let rendered = own.unwrap_or_else(|| problem(policy, refusal));
    let mut response = rendered.map(|bytes| ResponseBody::held(Held { bytes, trailers: None }));
    response.extensions_mut().insert(Verdict::Refused(refusal.code));
    let headers = response.headers_mut();
    let retry_after = refusal.retry_after.map(HeaderValue::from);
    let location =
        refusal.location.clone().and_then(|location| HeaderValue::from_maybe_shared(location).ok());
    set_absent(headers, header::CACHE_CONTROL, Some(HeaderValue::from_static("no-store")));
    set_absent(headers, header::RETRY_AFTER, retry_after);
    set_absent(headers, header::LOCATION, location);
    set_absent(headers, header::LINK, policy.docs_link.clone());
    response
}

/// Tells a layer around this one that a refusal ran nothing here, so that it frees its key instead of keeping the refusal:
/// a retry comes as far as this layer again, which knows what may run.
pub(crate) fn tell_outward<B>(mut response: Response<B>) -> Response<B> {
    let refused = response.extensions().get::<Verdict>();
    if matches!(refused, Some(Verdict::Refused(code)) if *code != Code::Internal) {
        response.extensions_mut().insert(Ending::NotExecuted);
    }
    response
}

fn set_absent(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let (Some(value), false) = (value, headers.contains_key(&name)) {
        headers.insert(name, value);
    }
}

fn problem(policy: &Policy, refusal: &Refusal) -> Response<Bytes> {
    let status = StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut problem = HttpApiProblem::new(status)
        .type_url(format!("{}{}", policy.problem_base, refusal.code))
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
    let mut response = Response::new(Bytes::from(problem.json_bytes()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}
