//! A protocol over HTTP, spoken by a test: its refusals, what of a body counts, and what says how a run ended. And what a
//! layer outside says of a request that passes.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use idempotency_tower::{Ending, OnServerError, Pass, Policy, PolicyBuilder, Protocol, Refusal};

use crate::setup::{Door, Incoming, OwnBody, never, policy, post, text};

/// What an answer says of its ending. The layer takes every field that begins so off an answer.
const WORD: HeaderName = HeaderName::from_static("idempotency-word");

const PROTOCOL: Protocol = Protocol { refusal, meaning, ending };

fn refusal(refusal: &Refusal) -> Response<Bytes> {
    Response::new(format!("no: {}", refusal.code.name()).into())
}

/// Small letters and capitals are the same.
fn meaning(_: &Parts, body: &Bytes) -> Bytes {
    body.to_ascii_lowercase().into()
}

fn ending(fields: &HeaderMap, on_server_error: OnServerError) -> Option<Ending> {
    match fields.get(WORD)?.as_bytes() {
        b"done" => Some(Ending::Keep),
        b"nothing done" => Some(Ending::NotExecuted),
        b"half done" => Some(Ending::Unknown),
        _ => Some(on_server_error.ending()),
    }
}

/// A door under `policy`, which speaks.
fn door(policy: PolicyBuilder, answer: fn() -> Response<OwnBody>) -> Door {
    Door::speaking(policy, PROTOCOL, move |_: Incoming| Box::pin(future::ready(Ok(answer()))))
}

fn saying(word: &'static str) -> Response<OwnBody> {
    let mut response = Response::new(text("tea"));
    response.headers_mut().insert(WORD, HeaderValue::from_static(word));
    response
}

/// An answer whose word is in its trailers, behind a field that stays.
fn trailing(word: &'static str) -> Response<OwnBody> {
    let trailers = HeaderMap::from_iter([
        (WORD, HeaderValue::from_static(word)),
        (HeaderName::from_static("x-sum"), HeaderValue::from_static("7")),
    ]);
    let frames = [Frame::data(Bytes::from_static(b"tea")), Frame::trailers(trailers)];
    let frames = stream::iter(frames.map(Ok::<_, Infallible>));
    Response::new(StreamBody::new(frames).map_err(never).boxed_unsync())
}

#[tokio::test]
async fn refusals_and_payloads_are_the_protocols_own() {
    let door = door(policy().required(), || saying("done"));
    assert_eq!(door.send(post("k", "tea")).await.body, "tea");
    assert!(door.send(post("k", "TEA")).await.is_replay(), "the same by its meaning");
    assert_eq!(door.send(post("k", "coffee")).await.body, "no: fingerprint-mismatch");
    let unkeyed = Request::post("/orders?shop=1").body(Full::from("tea")).unwrap();
    assert_eq!(door.send(unkeyed).await.body, "no: missing-key");
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_word_in_the_head_or_in_the_trailers_ends_the_run() {
    type Answer = fn() -> Response<OwnBody>;
    let answers: [(Answer, Answer, &str, usize); 3] = [
        (|| saying("done"), || trailing("done"), "tea", 1),
        (|| saying("nothing done"), || trailing("nothing done"), "tea", 2),
        (|| saying("half done"), || trailing("half done"), "no: outcome-unknown", 1),
    ];
    for (head, trailers, retry, runs) in answers {
        for answer in [head, trailers] {
            let door = door(policy(), answer);
            let first = door.send(post("k", "tea")).await;
            assert_eq!((&first.body[..], first.header(WORD.as_str())), (&b"tea"[..], None));
            let second = door.send(post("k", "tea")).await;
            assert_eq!((&second.body[..], door.runs()), (retry.as_bytes(), runs));
            for trailers in [first.trailers, second.trailers].into_iter().flatten() {
                assert_eq!(trailers.keys().collect::<Vec<_>>(), ["x-sum"], "the word is the layer's alone");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_without_a_word_is_a_server_error() {
    let silent = || Response::new(text("tea"));
    for (on_server_error, retry, runs) in [
        (OnServerError::Release, "tea", 2),
        (OnServerError::Keep, "tea", 1),
        (OnServerError::Hold, "no: outcome-unknown", 1),
    ] {
        let door = door(policy().on_server_error(on_server_error), silent);
        door.send(post("k", "tea")).await;
        let second = door.send(post("k", "tea")).await;
        assert_eq!((&second.body[..], door.runs()), (retry.as_bytes(), runs), "{on_server_error:?}");
    }
}

/// Nobody waits for the end of an answer whose client left half a minute ago, and so nobody knows what it would have said.
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_abandoned_is_in_doubt_where_server_errors_are_held() {
    let endless = || {
        let frames =
            stream::once(future::ready(Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"tea")))));
        let body = StreamBody::new(frames.chain(stream::pending()));
        Response::new(body.map_err(never).boxed_unsync())
    };
    for (on_server_error, retry) in
        [(OnServerError::Release, "no: result-not-replayable"), (OnServerError::Hold, "no: outcome-unknown")]
    {
        let door = door(Policy::builder().on_server_error(on_server_error), endless);
        drop(door.open(post("k", "tea")).await.unwrap());
        assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
        assert_eq!(door.send(post("k", "tea")).await.body, retry, "{on_server_error:?}");
        assert_eq!(door.runs(), 1);
    }
}

#[tokio::test]
async fn a_protocol_has_no_other_methods_than_its_own() {
    let door = door(policy().methods([Method::PATCH]), || saying("done"));
    for method in [Method::POST, Method::PUT, Method::GET] {
        let mut request = post(method.as_str(), "tea");
        *request.method_mut() = method;
        door.send(request.clone()).await;
        assert!(door.send(request).await.is_replay());
    }
}

#[tokio::test]
async fn what_a_layer_outside_lets_pass_is_neither_guarded_nor_missed() {
    let door = Door::answering(policy().required(), || Response::new(text("tea")));
    let unkeyed = Request::post("/orders?shop=1").body(Full::from("tea")).unwrap();
    for (runs, mut request) in (1..).zip([post("k", "tea"), post("k", "tea"), unkeyed]) {
        request.extensions_mut().insert(Pass);
        let answer = door.send(request).await;
        assert_eq!((answer.status, answer.is_replay(), door.runs()), (200, false, runs));
    }
    assert!(!door.send(post("k", "coffee")).await.is_replay(), "none of them took the key");
    assert_eq!(door.runs(), 4);
}
