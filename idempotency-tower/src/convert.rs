//! Between the types of `http` and the words of the HTTP profile.

use std::mem::take;

use bytes::Bytes;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts,
};
use idempotency_core::{
    Address, Door, Key, Operation, Outcome,
    profile::http::{Answer, Fields, Head, Refusal, Stored, Tombstone, headers},
};

use crate::{
    Oversized, Policy, Verdict,
    body::{Held, RequestBody, ResponseBody},
    error::caught,
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
) -> Result<Operation, Refusal> {
    let take = || policy.fingerprints.take(parts, (policy.uri)(parts), caller, body);
    let (asked, previous) = caught("fingerprint", take)?;
    let op = Operation::new(Address::new(door, &caller.scope, key), asked);
    Ok(match previous {
        Some(previous) => op.with_previous(previous),
        None => op,
    })
}

/// The request again, its body now in memory.
pub(crate) fn request<B>(parts: Parts, held: Held) -> Request<RequestBody<B>> {
    Request::from_parts(parts, RequestBody::read(held))
}

/// Takes off what only this layer may set.
pub(crate) fn strip_markers(headers: &mut HeaderMap, replayed_header: &HeaderName) {
    strip(headers, |name| headers::is_marker(name.as_str()) || name == replayed_header);
}

fn strip(headers: &mut HeaderMap, is_out: impl Fn(&HeaderName) -> bool) {
    let out: Vec<_> = headers.keys().filter(|name| is_out(name)).cloned().collect();
    for name in out {
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
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect()
}

/// The maps of a request that goes no further: its answer stands in their memory.
#[derive(Default)]
pub(crate) struct Room {
    headers: HeaderMap,
    extensions: Extensions,
}

impl Room {
    pub(crate) fn left_by(parts: &mut Parts) -> Self {
        let (mut headers, mut extensions) = (take(&mut parts.headers), take(&mut parts.extensions));
        headers.clear();
        extensions.clear();
        Self { headers, extensions }
    }
}

/// The response that a completed operation's duplicate gets.
pub(crate) fn replay<B>(policy: &Policy, outcome: &Outcome, room: Room) -> Response<ResponseBody<B>> {
    let refusal = match Stored::decode(outcome) {
        Ok(Stored::Whole(answer)) => match whole(answer, room) {
            Some(response) => return mark(policy, response),
            None => Refusal::unreadable_record(),
        },
        Ok(Stored::Omitted(head)) => match omitted(&head, room) {
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

fn whole<B>(answer: Answer, room: Room) -> Option<Response<ResponseBody<B>>> {
    let Answer { status, headers, body, trailers } = answer;
    let trailers = match trailers {
        Some(fields) => Some(Box::new(header_map(&fields, HeaderMap::new())?)),
        None => None,
    };
    let announced = trailers.as_deref().and_then(trailer_names);
    let mut response = response(&Head { status, headers }, Held { bytes: body, trailers }, room)?;
    if let Some(names) = announced {
        // HTTP/1.1 sends only the trailers that were announced.
        response.headers_mut().insert(header::TRAILER, names);
    }
    Some(response)
}

fn omitted<B>(head: &Head, room: Room) -> Option<Response<ResponseBody<B>>> {
    let mut response = response(head, Held::default(), room)?;
    let headers = response.headers_mut();
    strip(headers, |name| headers::describes_body(name.as_str()));
    headers.insert(HeaderName::from_static(headers::IDEMPOTENCY_REPLAY), HeaderValue::from_static("omitted"));
    Some(response)
}

fn response<B>(head: &Head, held: Held, room: Room) -> Option<Response<ResponseBody<B>>> {
    let mut response = Response::new(ResponseBody::held(held));
    let status = StatusCode::from_u16(head.status).ok()?;
    if status.is_informational() {
        return None; // no answer at all, and an upgrade least of all
    }
    *response.status_mut() = status;
    *response.headers_mut() = header_map(&head.headers, room.headers)?;
    *response.extensions_mut() = room.extensions;
    Some(response)
}

fn mark<B>(policy: &Policy, mut response: Response<ResponseBody<B>>) -> Response<ResponseBody<B>> {
    response.extensions_mut().insert(Verdict::Replayed);
    let headers = response.headers_mut();
    headers.insert(policy.replayed_header.clone(), HeaderValue::from_static("true"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The fields of a record in an empty map, but for those no record may set; none when they are no header fields or too many.
fn header_map(fields: &Fields, mut headers: HeaderMap) -> Option<HeaderMap> {
    const OUR_OWN: usize = 5;
    // Many lines may share a name, so their number is no measure of the room they need.
    headers.try_reserve(fields.len().min(64) + OUR_OWN).ok()?;
    for (name, value) in fields.iter() {
        let name = HeaderName::from_bytes(name).ok()?;
        let value = HeaderValue::from_maybe_shared(value).ok()?;
        if !headers::is_never_replayed(name.as_str()) {
            headers.try_append(name, value).ok()?;
        }
    }
    headers.try_reserve(OUR_OWN).ok()?;
    Some(headers)
}

fn trailer_names(trailers: &HeaderMap) -> Option<HeaderValue> {
    let names: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
    if names.is_empty() { None } else { HeaderValue::from_str(&names.join(", ")).ok() }
}

/// What is kept of an answer, once it is known whether its body can be.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Without a body.
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

    pub(crate) fn whole(&mut self, policy: &Policy, held: Held) -> Outcome {
        self.answer.body = held.bytes;
        self.answer.trailers = held.trailers.as_deref().map(|trailers| replayed_fields(policy, trailers));
        let outcome = self.answer.encode();
        self.answer.body = Bytes::new(); // it stands in the outcome now
        outcome
    }

    /// What stands for an answer that is not kept: as much of its head as fits into `max_outcome_bytes`, and its status
    /// even where that is too little, since no outcome may be lost for its size.
    pub(crate) fn tombstone(&self, max_outcome_bytes: usize) -> Outcome {
        let Answer { status, ref headers, .. } = self.answer;
        if self.omit_body {
            let describes_body = |name| str::from_utf8(name).is_ok_and(headers::describes_body);
            let headers = headers.iter().filter(|(name, _)| !describes_body(name)).collect();
            let head = Head { status, headers };
            if head.encoded_len() <= max_outcome_bytes {
                return head.encode();
            }
        }
        let location = headers.iter().find(|(name, _)| *name == header::LOCATION.as_str().as_bytes());
        let located = Tombstone { status, location: location.map(|(_, value)| value) };
        if located.encoded_len() <= max_outcome_bytes {
            return located.encode();
        }
        Tombstone { location: None, ..located }.encode()
    }
}

#[cfg(test)]
mod tests;
