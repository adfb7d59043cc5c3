//! Between actix's heads and those of the `http` crate: actix stands on an older version of it.

use actix_web::{
    HttpMessage, HttpRequest, HttpResponse,
    http::{StatusCode, header},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, response};
use idempotency_tower::{Ending, Verdict};

use crate::layer::Show;

/// Whether `request` has a header of this name.
pub(crate) fn has_header(request: &HttpRequest, name: &HeaderName) -> bool {
    request.headers().contains_key(name.as_str())
}

/// The method of `request`.
pub(crate) fn method(request: &HttpRequest) -> Result<Method, http::Error> {
    Ok(Method::from_bytes(request.method().as_str().as_bytes())?)
}

/// The head of `request`, with what `shown` copies of its extensions. Its path is the whole one, whatever scopes it is
/// routed through.
pub(crate) fn request<B>(
    request: &HttpRequest,
    method: Method,
    shown: &[Show],
    body: B,
) -> Result<Request<B>, http::Error> {
    let mut asked = Request::builder().method(method).uri(request.uri().to_string()).body(body)?;
    let headers = asked.headers_mut();
    headers.try_reserve(request.headers().len())?;
    for (name, value) in request.headers() {
        headers.try_append(
            HeaderName::from_bytes(name.as_str().as_bytes())?,
            HeaderValue::from_bytes(value.as_bytes())?,
        )?;
    }
    let extensions = request.extensions();
    for show in shown {
        show(&extensions, asked.extensions_mut());
    }
    Ok(asked)
}

/// What a handler answered, and how it says its run ended.
pub(crate) fn answer<B>(head: &HttpResponse<()>, body: B) -> Result<Response<B>, http::Error> {
    let mut answer = Response::builder().status(head.status().as_u16()).body(body)?;
    for (name, value) in head.headers() {
        answer.headers_mut().try_append(
            HeaderName::from_bytes(name.as_str().as_bytes())?,
            HeaderValue::from_bytes(value.as_bytes())?,
        )?;
    }
    if let Some(ending) = head.extensions().get::<Ending>() {
        answer.extensions_mut().insert(*ending);
    }
    Ok(answer)
}

/// The response that the caller gets. The handler's own head is kept where its answer is the one: with its extensions,
/// its error, and what it says of the connection.
pub(crate) fn response(own: Option<HttpResponse<()>>, answered: &response::Parts) -> HttpResponse<()> {
    let verdict = answered.extensions.get::<Verdict>();
    let own = own.filter(|_| !matches!(verdict, Some(Verdict::Replayed | Verdict::Refused(_))));
    let status = StatusCode::from_u16(answered.status.as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = own.unwrap_or_else(|| HttpResponse::new(status).drop_body());
    *response.status_mut() = status;
    set_headers(&mut response, &answered.headers);
    let mut extensions = response.extensions_mut();
    if let Some(verdict) = verdict {
        extensions.insert(*verdict);
    }
    if let Some(ending) = answered.extensions.get::<Ending>() {
        extensions.insert(*ending);
    }
    drop(extensions);
    response
}

fn set_headers(response: &mut HttpResponse<()>, answered: &HeaderMap) {
    let headers = response.headers_mut();
    headers.clear();
    for (name, value) in answered {
        // Every name and value of the one version is one of the other.
        let name = header::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = header::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
}
