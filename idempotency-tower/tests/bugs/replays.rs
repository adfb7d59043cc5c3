//! What a replay gives back.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use idempotency_store_contract::faults::Call;
use idempotency_tower::{OnServerError, Oversized, Policy};
use tokio::sync::mpsc;

use crate::{
    bench::{Counter, boxed, keyed, shelves, status, with},
    setup::{BodyError, Door, OwnBody, policy, post, text},
};

/// What handlers send: cookies, validators, links, one header twice, and fields of the connection.
fn headers(_: usize) -> Response<OwnBody> {
    Response::builder()
        .status(201)
        .header("content-type", "application/json")
        .header("content-length", "2")
        .header("location", "/orders/1")
        .header("etag", "\"v1\"")
        .header("set-cookie", "sid=1")
        .header("set-cookie", "seen=1")
        .header("www-authenticate", "Basic")
        .header("connection", "keep-alive, x-hop")
        .header("x-hop", "1")
        .body(text("{}"))
        .unwrap()
}

#[tokio::test]
async fn bug_054_a_replay_has_the_status_and_the_headers_of_the_first_answer() {
    for shelf in shelves().await {
        let counter = Counter::answering(&shelf.store, Policy::builder(), headers);
        let first = counter.send(with(keyed("k"), "a")).await;
        let replay = counter.send(with(keyed("k"), "a")).await;
        assert!(replay.is_replay() && replay.status == 201 && replay.body == first.body, "{}", shelf.name);
        for (name, value) in
            [("content-type", "application/json"), ("location", "/orders/1"), ("etag", "\"v1\"")]
        {
            assert_eq!(replay.header(name), Some(value), "{}", shelf.name);
        }
        let accepted = Counter::answering(&shelf.store, Policy::builder(), |_| status(202, "soon"));
        accepted.send(with(keyed("soon"), "a")).await;
        let replay = accepted.send(with(keyed("soon"), "a")).await;
        assert_eq!((replay.status, replay.is_replay()), (202, true));
    }
}

#[tokio::test]
async fn bug_055_cookies_and_challenges_are_the_first_callers_alone() {
    let door = Door::answering(policy(), || headers(1));
    let first = door.send(post("k", "a")).await;
    let cookies = |answer: &crate::setup::Answer| answer.headers.get_all("set-cookie").iter().count();
    assert_eq!(cookies(&first), 2);
    let replay = door.send(post("k", "a")).await;
    assert_eq!((cookies(&replay), replay.header("www-authenticate")), (0, None));
    let fields = idempotency_tower::ReplayedFields::default().allow(["Set-Cookie"]);
    let opted_in = Door::answering(policy().replayed_fields(fields), || headers(1));
    opted_in.send(post("k", "a")).await;
    assert_eq!(cookies(&opted_in.send(post("k", "a")).await), 2);
}

#[tokio::test]
async fn bug_057_no_framing_is_stored() {
    let chunked = || {
        let mut answer = headers(1);
        answer.headers_mut().remove("content-length");
        answer.headers_mut().insert("transfer-encoding", HeaderValue::from_static("chunked"));
        answer
    };
    for door in [Door::answering(policy(), || headers(1)), Door::answering(policy(), chunked)] {
        door.send(post("k", "a")).await;
        let mut response = door.open(post("k", "a")).await.unwrap();
        assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(2), "the server frames it anew");
        for name in ["content-length", "transfer-encoding", "connection", "x-hop"] {
            assert!(!response.headers().contains_key(name), "{name}");
        }
        assert_eq!(response.body_mut().collect().await.unwrap().to_bytes(), "{}");
    }
}

/// A body that comes in pieces, as [`StreamBody`] takes them.
fn stream(pieces: Vec<Result<Frame<Bytes>, BodyError>>) -> OwnBody {
    StreamBody::new(futures_util::stream::iter(pieces)).boxed_unsync()
}

fn piece(text: &'static str) -> Result<Frame<Bytes>, BodyError> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

#[tokio::test]
async fn bug_059_a_stream_is_replayed_byte_for_byte_from_every_store() {
    for shelf in shelves().await {
        let counter = Counter::answering(&shelf.store, Policy::builder(), |_| {
            Response::new(stream(vec![piece("one "), piece("\u{0}\u{ff} "), piece("three")]))
        });
        let first = counter.send(with(keyed("k"), "a")).await;
        let replay = counter.send(with(keyed("k"), "a")).await;
        assert_eq!(first.body, "one \u{0}\u{ff} three");
        assert!(replay.is_replay() && replay.body == first.body, "{}", shelf.name);
    }
}

#[tokio::test]
async fn bug_061_an_empty_answer_is_stored_on_every_store() {
    for shelf in shelves().await {
        let counter = Counter::answering(&shelf.store, Policy::builder(), |_| status(204, ""));
        counter.send(with(keyed("k"), "a")).await;
        let replay = counter.send(with(keyed("k"), "a")).await;
        assert!(replay.is_replay() && replay.status == 204 && replay.body.is_empty(), "{}", shelf.name);
        assert_eq!((replay.header("content-length"), counter.runs()), (None, 1));
    }
}

#[tokio::test]
async fn bug_063_a_key_on_a_safe_method_changes_nothing() {
    let door = Door::answering(policy(), || status(200, "fresh"));
    for (runs, method) in (1..).zip([Method::GET, Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE])
    {
        let request = Request::builder().method(method).uri("/counter").header("idempotency-key", "k");
        let answer = door.send(with(request, "")).await;
        assert_eq!((answer.is_replay(), door.runs()), (false, runs));
    }
    assert_eq!(door.faults.calls(Call::Claim), 0);
}

/// What a route keeps, in bytes, and the sizes of what its runs answer, one after another.
const KEPT: usize = 256 << 10;
const SIZES: [usize; 4] = [KEPT - 1, KEPT, KEPT + 1, 1_000_000];

fn sized(run: usize) -> Response<OwnBody> {
    Response::new(boxed(Full::from(vec![b'x'; SIZES[run - 1]])))
}

#[tokio::test]
async fn bug_064_an_answer_too_large_to_store_is_no_reason_to_run_again() {
    for shelf in shelves().await {
        let counter = Counter::answering(&shelf.store, Policy::builder().max_response_bytes(KEPT), sized);
        for (runs, size) in (1..).zip(SIZES) {
            let asked = || with(keyed(&size.to_string()), "a");
            assert_eq!(counter.send(asked()).await.body.len(), size, "the first caller gets it all");
            let second = counter.send(asked()).await;
            if size <= KEPT {
                assert!(second.is_replay() && second.body.len() == size, "{} {size}", shelf.name);
            } else {
                assert_eq!(second.code(), "result-not-replayable", "{} {size}", shelf.name);
                assert_eq!(second.problem()["original_status"], 200);
            }
            assert_eq!(counter.runs(), runs);
        }
        let omitted = Policy::builder().max_response_bytes(1).oversized(Oversized::OmitBody);
        let counter = Counter::answering(&shelf.store, omitted, headers);
        counter.send(with(keyed("k"), "a")).await;
        let head = counter.send(with(keyed("k"), "a")).await;
        assert_eq!((head.status, head.body.len(), head.header("etag")), (201, 0, Some("\"v1\"")));
        assert_eq!(
            (head.header("idempotency-replay"), counter.runs()),
            (Some("omitted"), 1),
            "{}",
            shelf.name
        );
    }
}

#[tokio::test]
async fn bug_065_the_first_event_of_a_stream_is_not_held_back() {
    for key in [Some("k"), None] {
        let (feed, frames) = mpsc::unbounded_channel();
        let frames = Arc::new(std::sync::Mutex::new(Some(frames)));
        let door = Door::answering(policy(), move || {
            let mut frames = frames.lock().unwrap().take().expect("one run");
            let events = futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx));
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(StreamBody::new(events).boxed_unsync())
                .unwrap()
        });
        let request =
            key.iter().fold(Request::post("/events"), |request, key| request.header("idempotency-key", *key));
        let mut response = door.open(with(request, "")).await.unwrap();
        feed.send(piece("data: 1\n\n")).unwrap();
        let event = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(event, "data: 1\n\n", "{key:?}");
        assert!(response.body_mut().frame().now_or_never().is_none(), "the handler goes on");
        feed.send(piece("data: 2\n\n")).unwrap();
        drop(feed);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "data: 2\n\n");
        if key.is_some() {
            let replay = door.send(with(Request::post("/events").header("idempotency-key", "k"), "")).await;
            assert!(replay.is_replay() && replay.body == "data: 1\n\ndata: 2\n\n");
        }
    }
}

#[tokio::test]
async fn bug_066_a_stream_that_breaks_off_is_never_replayed_as_whole() {
    let broken = || Response::new(stream(vec![piece("one"), piece("two"), Err(BodyError("disk"))]));
    for (policy, retry) in
        [(policy(), None), (policy().on_server_error(OnServerError::Hold), Some("outcome-unknown"))]
    {
        let door = Door::answering(policy, broken);
        let first = door.open(post("k", "a")).await.unwrap();
        assert!(first.into_body().collect().await.is_err(), "the connection is broken off, not ended");
        let again = door.open(post("k", "a")).await.unwrap();
        assert!(!again.headers().contains_key("idempotency-replayed"));
        match retry {
            None => {
                assert!(again.into_body().collect().await.is_err(), "it runs again, and breaks off again");
            }
            Some(code) => assert_eq!(crate::bench::read(again).await.code(), code),
        }
    }
}

#[tokio::test]
async fn bug_068_trailers_arrive_on_the_first_answer_and_on_its_replay() {
    let grpc = |status: &'static str| {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(status));
        trailers.insert("grpc-message", HeaderValue::from_static(""));
        trailers
    };
    let with_messages = move || {
        let frames = vec![piece("1"), piece("2"), piece("3"), Ok(Frame::trailers(grpc("0")))];
        Response::builder().header("content-type", "application/grpc").body(stream(frames)).unwrap()
    };
    let only_trailers = move || Response::new(stream(vec![Ok(Frame::trailers(grpc("5")))]));
    let known_length = move || {
        let body = Full::from("1").map_err(|never: Infallible| match never {});
        Response::new(body.with_trailers(std::future::ready(Some(Ok(grpc("0"))))).boxed_unsync())
    };
    for door in [
        Door::answering(policy(), with_messages),
        Door::answering(policy(), only_trailers),
        Door::answering(policy(), known_length),
    ] {
        let first = door.send(post("k", "a")).await;
        let replay = door.send(post("k", "a")).await;
        assert!(replay.is_replay() && replay.body == first.body);
        let trailers = replay.trailers.unwrap();
        assert_eq!(first.trailers, Some(trailers.clone()));
        assert_eq!((trailers.len(), trailers["grpc-message"].as_bytes()), (2, &b""[..]));
    }
    // An answer whose only trailers are its headers.
    let in_headers =
        || Response::builder().header("grpc-status", "5").header("grpc-message", "").body(text("")).unwrap();
    let door = Door::answering(policy(), in_headers);
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.header("grpc-status"), Some("5"));
}
