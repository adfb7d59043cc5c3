//! Response bodies: kept, streamed, withheld, cut and dropped.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use idempotency_store_contract::faults::{Call, Fault};
use idempotency_tower::{OnServerError, Oversized};
use tokio::sync::mpsc;

use crate::setup::{Answer, BodyError, Door, OwnBody, policy, post};

type Frames = Vec<Result<Frame<Bytes>, BodyError>>;

fn data(text: &'static str) -> Result<Frame<Bytes>, BodyError> {
    Ok(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn trailers() -> Result<Frame<Bytes>, BodyError> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    trailers.insert("x-request-id", HeaderValue::from_static("1"));
    Ok(Frame::trailers(trailers))
}

fn stream(frames: Frames) -> OwnBody {
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

fn streaming(frames: fn() -> Frames) -> impl Fn() -> Response<OwnBody> + Clone + Send + Sync + 'static {
    move || Response::builder().header("x-kept", "1").body(stream(frames())).unwrap()
}

/// A door whose handler streams what the test sends, for one request.
fn fed(
    door: impl Fn(OwnBody) -> Response<OwnBody> + Clone + Send + Sync + 'static,
) -> (Door, mpsc::UnboundedSender<Result<Frame<Bytes>, BodyError>>) {
    let (feed, frames) = mpsc::unbounded_channel();
    let frames = std::sync::Arc::new(std::sync::Mutex::new(Some(frames)));
    let door = Door::answering(policy(), move || {
        let mut frames = frames.lock().unwrap().take().expect("one run");
        door(StreamBody::new(futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx))).boxed_unsync())
    });
    (door, feed)
}

#[tokio::test]
async fn a_stream_within_the_cap_replays_byte_for_byte_with_its_trailers() {
    let door =
        Door::answering(policy(), streaming(|| vec![data("one "), data("two "), data("three"), trailers()]));
    let first = door.send(post("k", "a")).await;
    let second = door.send(post("k", "a")).await;
    assert_eq!((&first.body[..], &second.body[..]), (&b"one two three"[..], &b"one two three"[..]));
    assert!(second.is_replay() && second.header("x-kept") == Some("1"));
    assert_eq!(first.trailers.unwrap().len(), 2);
    let replayed = second.trailers.unwrap();
    assert_eq!(replayed.get("grpc-status").unwrap(), "0");
    assert!(!replayed.contains_key("x-request-id"), "the deny list holds for trailers too");
    assert_eq!(
        second.headers.get("trailer").unwrap(),
        "grpc-status",
        "HTTP/1.1 sends announced trailers only"
    );
}

#[tokio::test]
async fn the_first_chunk_comes_while_the_handler_still_streams() {
    let (door, feed) = fed(Response::new);
    feed.send(data("first")).unwrap();
    let mut response = door.open(post("k", "a")).await.unwrap();
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "first");
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict", "the run includes its body");
    feed.send(data("last")).unwrap();
    drop(feed);
    assert_eq!(Answer::read(response).await.body, "last");
    assert_eq!(door.send(post("k", "a")).await.body, "firstlast");
}

#[tokio::test]
async fn the_end_of_a_stream_waits_for_its_completion() {
    let door =
        Door::answering(policy().settle_wait(Duration::from_secs(60)), streaming(|| vec![data("all")]));
    door.faults.set(Call::Complete, Fault::Hangs);
    let mut response = door.open(post("k", "a")).await.unwrap();
    assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "all");
    door.faults.reached(Call::Complete, 1).await;
    assert!(response.body_mut().frame().now_or_never().is_none(), "the end is withheld");
    door.faults.mend(Call::Complete);
    assert!(response.body_mut().frame().await.is_none());
    assert!(door.send(post("k", "a")).await.is_replay());
}

#[tokio::test]
async fn the_last_byte_of_a_declared_length_waits_for_the_completion() {
    let answer = || {
        let frames = vec![data("abc"), data("def")];
        Response::builder().header("content-length", "6").body(stream(frames)).unwrap()
    };
    let door = Door::answering(policy().settle_wait(Duration::from_secs(60)), answer);
    door.faults.set(Call::Complete, Fault::Hangs);
    let response = door.open(post("k", "a")).await.unwrap();
    let mut body = response.into_body();
    door.faults.reached(Call::Complete, 1).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abcde");
    assert!(body.frame().now_or_never().is_none(), "the last byte is withheld");
    door.faults.mend(Call::Complete);
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "f");
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn an_end_is_withheld_no_longer_than_settle_wait() {
    let door = Door::answering(policy(), streaming(|| vec![data("all")]));
    door.faults.set(Call::Complete, Fault::Hangs);
    assert_eq!(door.send(post("k", "a")).await.body, "all");
    assert_eq!(door.layer.live_runs(), 1, "the completion is still tried");
    door.faults.mend(Call::Complete);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay());
}

#[tokio::test]
async fn past_the_cap_a_tombstone_is_stored_and_the_rest_streams() {
    for (frames, what) in [
        (streaming(|| vec![data("12345678"), data("9")]), "streamed"),
        (streaming(|| vec![data("123456789")]), "in one frame"),
    ] {
        let door = Door::answering(policy().max_response_bytes(8), frames);
        assert_eq!(door.send(post("k", "a")).await.body, "123456789", "{what}");
        let second = door.send(post("k", "a")).await;
        assert_eq!((second.status, second.code().as_str()), (409, "result-not-replayable"), "{what}");
        assert_eq!((second.problem()["original_status"].as_u64(), door.runs()), (Some(200), 1));
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_is_kept() {
    let door =
        Door::answering(policy().max_response_bytes(9), streaming(|| vec![data("12345678"), data("9")]));
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.body, "123456789");
    let known = || Response::new(crate::setup::text("123456789"));
    let door = Door::answering(policy().max_response_bytes(9), known);
    door.send(post("k", "a")).await;
    assert_eq!(door.send(post("k", "a")).await.body, "123456789");
    let door = Door::answering(policy().max_response_bytes(8), known);
    assert_eq!(door.send(post("k", "a")).await.body, "123456789");
    assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
}

#[tokio::test]
async fn a_route_may_replay_the_head_of_what_is_too_large() {
    let policy = policy().max_response_bytes(8).oversized(Oversized::OmitBody);
    let door = Door::answering(policy, streaming(|| vec![data("123456789")]));
    door.send(post("k", "a")).await;
    let second = door.send(post("k", "a")).await;
    assert_eq!((second.status, second.body.len(), door.runs()), (200, 0, 1));
    assert!(second.is_replay() && second.header("x-kept") == Some("1"));
    assert_eq!(second.header("idempotency-replay"), Some("omitted"));
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_body_delays_nothing() {
    let (door, feed) = fed(Response::new);
    feed.send(data("one ")).unwrap();
    let mut response = door.open(post("k", "a")).await.unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    feed.send(data("two")).unwrap();
    drop(feed);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert_eq!(door.send(post("k", "a")).await.body, "one two");
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_nothing_within_the_cap() {
    let (door, feed) = fed(Response::new);
    let response = door.open(post("k", "a")).await.unwrap();
    for _ in 0..1000 {
        feed.send(data("0123456789")).unwrap();
    }
    drop(feed);
    door.faults.reached(Call::Complete, 1).await;
    assert_eq!(Answer::read(response).await.body.len(), 10_000);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_drained_for_a_while_after_its_client_left() {
    let (door, feed) = fed(Response::new);
    feed.send(data("one ")).unwrap();
    drop(door.open(post("k", "a")).await.unwrap());
    assert_eq!(door.layer.drain(Duration::from_secs(29)).await.left, 1);
    assert_eq!(door.layer.drain(Duration::from_secs(2)).await.left, 0);
    assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
    drop(feed);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_never_stored_as_whole() {
    let broken = || vec![data("half"), Err(BodyError("the disk is gone"))];
    let door = Door::answering(policy(), streaming(broken));
    let response = door.open(post("k", "a")).await.unwrap();
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
    door.open(post("k", "a")).await.unwrap();
    assert_eq!(door.runs(), 2, "by default it frees the key, as a 5xx does");

    let door = Door::answering(policy().on_server_error(OnServerError::Hold), streaming(broken));
    door.open(post("k", "a")).await.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");

    let door = Door::answering(policy().on_server_error(OnServerError::Keep), streaming(broken));
    door.open(post("k", "a")).await.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(door.send(post("k", "a")).await.code(), "result-not-replayable");
}

#[tokio::test]
async fn a_body_that_panics_breaks_the_answer_off() {
    let panics = || {
        let frames = futures_util::stream::iter([0, 1])
            .map(|turn| if turn == 0 { data("half") } else { panic!("out of ink") });
        Response::new(StreamBody::new(frames).boxed_unsync())
    };
    let door = Door::answering(policy(), panics);
    let response = door.open(post("k", "a")).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    drop(door.open(post("k", "a")).await.unwrap());
    assert_eq!(door.runs(), 2);
}

#[tokio::test]
async fn a_body_shorter_than_its_declared_length_is_never_stored_as_whole() {
    let short = |frames: fn() -> OwnBody| {
        move || Response::builder().header("content-length", "1000").body(frames()).unwrap()
    };
    let door = Door::answering(policy(), short(|| stream(vec![data("half")])));
    let cut = door.open(post("k", "a")).await.unwrap();
    assert!(cut.into_body().collect().await.is_err(), "the client sees that it is not whole");
    drop(door.open(post("k", "a")).await.unwrap());
    assert_eq!(door.runs(), 2, "by default it frees the key, as a 5xx does");

    let door = Door::answering(policy(), short(|| crate::setup::text("half")));
    assert_eq!(door.send(post("k", "a")).await.code(), "internal", "known to be wrong before a byte is sent");
    let held = policy().on_server_error(OnServerError::Hold);
    let door = Door::answering(held, short(|| stream(vec![data("half")])));
    door.open(post("k", "a")).await.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(door.send(post("k", "a")).await.code(), "outcome-unknown");
}

#[tokio::test]
async fn an_answer_that_has_no_body_may_declare_another_ones_length() {
    for (status, body) in [(304, stream as fn(Frames) -> OwnBody), (204, |_| crate::setup::text(""))] {
        let bodiless = move || {
            Response::builder().status(status).header("content-length", "1000").body(body(vec![])).unwrap()
        };
        let door = Door::answering(policy(), bodiless);
        assert_eq!(door.send(post("k", "a")).await.status, status);
        assert!(door.send(post("k", "a")).await.is_replay(), "{status}");
    }
}

#[tokio::test]
async fn markers_are_taken_off_the_trailers_of_an_answer() {
    const OURS: &str = "idempotent-replayed";

    let trailers = || {
        let mut trailers = HeaderMap::new();
        trailers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        trailers.insert(OURS, HeaderValue::from_static("true"));
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        trailers
    };
    let policy = || policy().replayed_header(HeaderName::from_static(OURS));
    let known = move || {
        let body = http_body_util::Full::from("done").map_err(crate::setup::never);
        Response::new(body.with_trailers(std::future::ready(Some(Ok(trailers())))).boxed_unsync())
    };
    let streamed = move || Response::new(stream(vec![data("done"), Ok(Frame::trailers(trailers()))]));
    for door in [Door::answering(policy(), known), Door::answering(policy(), streamed)] {
        for answer in [door.send(post("k", "a")).await, door.send(post("k", "a")).await] {
            let names = answer.trailers.unwrap();
            assert_eq!(names.keys().collect::<Vec<_>>(), ["grpc-status"]);
        }
    }
}
