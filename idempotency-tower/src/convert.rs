//! Between the types of `http` and the words of the HTTP profile.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use idempotency_core::{
    Address, Door, Key, Operation, Outcome,
    profile::http::{Answer, Fields, Head, Refusal, Stored, Tombstone, headers},
};

use crate::{
    Oversized, Policy, Verdict,
    body::{Held, RequestBody, ResponseBody},
    refusal::refuse,
    scope::Caller,
};

/// The operation a request asks for.
pub(crate) fn operation(
    door: Door,
    policy: &Policy,
    parts: &Parts,
    key: &Key,
    caller: &Caller<'_>,
    body: &Bytes,
) -> Operation {
    let (asked, previous) = policy.fingerprints.take(parts, (policy.uri)(parts), caller, body);
    let op = Operation::new(Address::new(door, &caller.scope, key), asked);
    match previous {
        Some(previous) => op.with_previous(previous),
        None => op,
    }
}

/// The request again, its body now in memory.
pub(crate) fn request<B>(parts: Parts, held: Held) -> Request<RequestBody<B>> {
    Request::from_parts(parts, RequestBody::read(held))
}

/// Takes off what only this layer may set.
pub(crate) fn strip_markers(headers: &mut HeaderMap, replayed_header: &HeaderName) {
    let marker = |name: &HeaderName| headers::is_marker(name.as_str()) || name == replayed_header;
    let markers: Vec<_> = headers.keys().filter(|name| marker(name)).cloned().collect();
    for name in markers {
        headers.remove(name);
    }
}

/// The fields of an answer, or of its trailers, that a replay repeats.
fn replayed_fields(policy: &Policy, fields: &HeaderMap) -> Fields {
    let connection = fields.get_all(header::CONNECTION);
    let nominated: Vec<_> =
        connection.iter().flat_map(|value| headers::nominated(value.as_bytes())).collect();
    fields
        .iter()
        .filter(|(name, _)| policy.replayed_fields.contains(name.as_str()))
        .filter(|(name, _)| !nominated.iter().any(|hop| hop.eq_ignore_ascii_case(name.as_str())))
        .map(|(name, value)| {
            (Bytes::copy_from_slice(name.as_ref()), Bytes::copy_from_slice(value.as_bytes()))
        })
        .collect()
}

/// The response that a completed operation's duplicate gets.
pub(crate) fn replay<B>(policy: &Policy, outcome: &Outcome) -> Response<ResponseBody<B>> {
    let refusal = match Stored::decode(outcome) {
        Ok(Stored::Whole(answer)) => match whole(answer) {
            Some(response) => return mark(policy, response),
            None => Refusal::unreadable_record(),
        },
        Ok(Stored::Omitted(head)) => match omitted(head) {
            Some(response) => return mark(policy, response),
            None => Refusal::unreadable_record(),
        },
        Ok(Stored::Tombstone(tombstone)) => Refusal::result_not_replayable(tombstone),
        Err(error) => {
            tracing::error!(%error, "a stored answer cannot be read; it is neither replayed nor run");
            Refusal::unreadable_record()
        }
    };
    refuse(policy, &refusal)
}

fn whole<B>(answer: Answer) -> Option<Response<ResponseBody<B>>> {
    let Answer { status, headers, body, trailers } = answer;
    let trailers = match trailers {
        Some(fields) => Some(header_map(fields)?),
        None => None,
    };
    let announced = trailers.as_ref().and_then(trailer_names);
    let mut response = response(Head { status, headers }, Held { bytes: body, trailers })?;
    if let Some(names) = announced {
        // HTTP/1.1 sends only the trailers that were announced.
        response.headers_mut().insert(header::TRAILER, names);
    }
    Some(response)
}

fn omitted<B>(head: Head) -> Option<Response<ResponseBody<B>>> {
    let mut response = response(head, Held::default())?;
    response
        .headers_mut()
        .insert(HeaderName::from_static(headers::IDEMPOTENCY_REPLAY), HeaderValue::from_static("omitted"));
    Some(response)
}

fn response<B>(head: Head, held: Held) -> Option<Response<ResponseBody<B>>> {
    let mut response = Response::new(ResponseBody::held(held));
    *response.status_mut() = StatusCode::from_u16(head.status).ok()?;
    *response.headers_mut() = header_map(head.headers)?;
    Some(response)
}

fn mark<B>(policy: &Policy, mut response: Response<ResponseBody<B>>) -> Response<ResponseBody<B>> {
    response.extensions_mut().insert(Verdict::Replayed);
    let headers = response.headers_mut();
    headers.insert(policy.replayed_header.clone(), HeaderValue::from_static("true"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn header_map(fields: Fields) -> Option<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(fields.len() + 2);
    for (name, value) in fields {
        let name = HeaderName::from_bytes(&name).ok()?;
        headers.append(name, HeaderValue::from_maybe_shared(value).ok()?);
    }
    Some(headers)
}

fn trailer_names(trailers: &HeaderMap) -> Option<HeaderValue> {
    let names: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
    if names.is_empty() { None } else { HeaderValue::from_str(&names.join(", ")).ok() }
}

/// What is kept of an answer, once it is known whether its body can be.
#[derive(Debug)]
pub(crate) struct Draft {
    answer: Answer,
    omit_body: bool,
}

impl Draft {
    pub(crate) fn new(policy: &Policy, status: StatusCode, headers: &HeaderMap) -> Self {
        let headers = replayed_fields(policy, headers);
        let answer = Answer { status: status.as_u16(), headers, body: Bytes::new(), trailers: None };
        Self { answer, omit_body: policy.oversized == Oversized::OmitBody }
    }

    /// The longest body this answer can be kept with.
    pub(crate) fn body_room(&self, max_outcome_bytes: usize) -> usize {
        self.answer.body_room(max_outcome_bytes)
    }

    pub(crate) fn whole(self, policy: &Policy, held: Held) -> Outcome {
        let trailers = held.trailers.as_ref().map(|trailers| replayed_fields(policy, trailers));
        Answer { body: held.bytes, trailers, ..self.answer }.encode()
    }

    pub(crate) fn tombstone(&self) -> Outcome {
        let Answer { status, headers, .. } = &self.answer;
        if self.omit_body {
            return Head { status: *status, headers: headers.clone() }.encode();
        }
        let location = headers.iter().find(|(name, _)| name == header::LOCATION.as_str());
        Tombstone { status: *status, location: location.map(|(_, value)| value.clone()) }.encode()
    }
}
