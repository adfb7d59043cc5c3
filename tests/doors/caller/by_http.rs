//! In HTTP's words: a status, and the code of a problem.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use tokio::time::timeout;

use super::{Answer, Call, End, Page, Told};
use crate::client::{self, Client, get};

/// Which status goes with which code.
const REFUSALS: [(StatusCode, &[&str]); 8] = [
    (StatusCode::BAD_REQUEST, &["missing-key", "invalid-key"]),
    (StatusCode::FORBIDDEN, &["missing-principal"]),
    (StatusCode::CONFLICT, &["conflict", "outcome-unknown", "result-not-replayable"]),
    (StatusCode::PAYLOAD_TOO_LARGE, &["payload-too-large"]),
    (StatusCode::UNPROCESSABLE_ENTITY, &["fingerprint-mismatch", "credentials-mismatch"]),
    (StatusCode::INTERNAL_SERVER_ERROR, &["internal"]),
    (StatusCode::SERVICE_UNAVAILABLE, &["store-unavailable"]),
    (StatusCode::GONE, &["key-expired"]),
];

pub(super) async fn send(client: &Client, call: Call) -> Told {
    let deadline = call.deadline;
    let sending = client.send(request(call));
    let answered = match deadline {
        Some(deadline) => timeout(deadline, sending).await.ok(),
        None => Some(sending.await),
    };
    match answered {
        Some(Ok(answer)) => told(answer),
        Some(Err(_)) | None => Told::Nothing,
    }
}

fn request(call: Call) -> Request<Full<bytes::Bytes>> {
    let path = match call.page {
        Page::Count { ms } => format!("/counter?ms={ms}"),
        Page::Order { ms } => format!("/orders?ms={ms}"),
        Page::Held => "/held".to_owned(),
        Page::Echo => "/echo".to_owned(),
        Page::Unavailable => "/status/503".to_owned(),
        Page::Decline => "/status/422".to_owned(),
        Page::Panic => "/panic".to_owned(),
        Page::Fields => "/headers".to_owned(),
        Page::Trailers => "/trailers".to_owned(),
        Page::Large { bytes } => format!("/large?bytes={bytes}"),
    };
    let mut request = Request::post(path).body(Full::from(call.payload)).unwrap();
    let fields = request.headers_mut();
    // Without it no server sends trailers.
    fields.insert(header::TE, HeaderValue::from_static("trailers"));
    for key in call.keys {
        fields.append("idempotency-key", HeaderValue::from_bytes(&key).unwrap());
    }
    for (name, value) in call.fields {
        fields.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    request
}

fn told(answer: client::Answer) -> Told {
    let code = answer.code();
    if !code.is_empty() {
        let known = REFUSALS.iter().find(|(status, _)| *status == answer.status);
        assert!(known.is_some_and(|(_, codes)| codes.contains(&&*code)), "{} {code}", answer.status);
        let after = answer.headers.get(header::RETRY_AFTER);
        let after = after.map(|after| Duration::from_secs(after.to_str().unwrap().parse().unwrap()));
        let differing = answer.json()["mismatch"].as_array().cloned().unwrap_or_default();
        let differing = differing.iter().map(|part| part.as_str().unwrap().to_owned());
        return Told::refused(&code, after, differing.collect());
    }
    let is_replay = answer.is_replay();
    let end = match answer.status {
        status if status.is_success() => End::Well,
        StatusCode::SERVICE_UNAVAILABLE => End::Unavailable,
        StatusCode::UNPROCESSABLE_ENTITY => End::Declined,
        other => panic!("no page answers {other}"),
    };
    let trailers = answer.trailers.unwrap_or_default();
    let answer = Answer { end, body: answer.body, fields: answer.headers, trailers };
    if is_replay { Told::Replayed(answer) } else { Told::Ran(answer) }
}

pub(super) async fn number(client: &Client, path: &str, member: &str) -> u64 {
    client.send(get(path)).await.unwrap().json()[member].as_u64().unwrap()
}
