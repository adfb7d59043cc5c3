//! The layer among others, outside and inside it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use idempotency_core::profile::http::headers::{CORS_ALLOW, CORS_EXPOSE};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, OnServerError, Policy};
use tokio::sync::Semaphore;
use tower::{
    Layer, Service, ServiceBuilder, ServiceExt, buffer::BufferLayer, limit::ConcurrencyLimitLayer,
    load_shed::LoadShedLayer, service_fn,
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    compression::CompressionLayer,
    cors::{AllowOrigin, CorsLayer},
    timeout::TimeoutLayer,
};

use crate::{
    bench::{ask, boxed, counting, keyed, ms, number, with},
    setup::{Answer, BodyError, Door, OwnBody, policy, post, text},
};

type Runs = Arc<AtomicUsize>;

fn layer() -> IdempotencyLayer<MemoryStore> {
    IdempotencyLayer::new(MemoryStore::new())
}

/// Gives a response the one type of body that every layer around it knows how to make.
fn plain<B>(response: Response<B>) -> Response<OwnBody>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    response.map(boxed)
}

/// Panics the first time and answers from then on.
fn clumsy<Q: Send + 'static>() -> impl Service<
    Request<Q>,
    Response = Response<OwnBody>,
    Error = Infallible,
    Future: Send + std::panic::UnwindSafe + 'static,
> + Clone
+ Send {
    let runs = Runs::default();
    service_fn(move |_: Request<Q>| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        std::panic::AssertUnwindSafe(async move {
            assert!(run > 0, "out of paper");
            Ok(Response::new(text("printed")))
        })
    })
}

#[tokio::test]
async fn bug_011_a_panic_leaves_no_key_behind_wherever_it_is_caught() {
    let bare = layer().layer(clumsy());
    let outside = ServiceBuilder::new()
        .map_response(plain)
        .layer(CatchPanicLayer::new())
        .layer(layer())
        .service(clumsy());
    let inside = ServiceBuilder::new()
        .layer(layer())
        .map_response(plain)
        .layer(CatchPanicLayer::new())
        .service(clumsy());
    let first = [
        ask(&bare, post("k", "a")).await,
        ask(&outside, post("k", "a")).await,
        ask(&inside, post("k", "a")).await,
    ];
    let second = [
        ask(&bare, post("k", "a")).await,
        ask(&outside, post("k", "a")).await,
        ask(&inside, post("k", "a")).await,
    ];
    assert_eq!(first.map(|answer| answer.status), [500; 3]);
    for answer in second {
        assert_eq!((answer.status, &answer.body[..], answer.is_replay()), (200, &b"printed"[..], false));
    }
}

#[tokio::test]
async fn bug_011_a_panic_in_the_body_leaves_no_key_behind() {
    use futures_util::StreamExt;
    let door = Door::answering(policy(), || {
        let frames = futures_util::stream::iter([0, 1]).map(|turn| {
            assert!(turn == 0, "out of ink");
            Ok::<_, BodyError>(http_body::Frame::data(Bytes::from_static(b"half")))
        });
        Response::new(http_body_util::StreamBody::new(frames).boxed_unsync())
    });
    for runs in 1..=2 {
        let response = door.open(post("k", "a")).await.unwrap();
        assert!(response.into_body().collect().await.is_err());
        assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
        assert_eq!(door.runs(), runs, "the retry is not refused");
    }
}

/// Counts, then takes 900 ms.
fn slow<Q: Send + 'static>(
    runs: &Runs,
) -> impl Service<Request<Q>, Response = Response<OwnBody>, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ use<Q> {
    let runs = Arc::clone(runs);
    service_fn(move |_: Request<Q>| {
        let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(ms(900)).await;
            Ok(number(run))
        }
    })
}

fn timeout() -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, ms(300))
}

#[tokio::test(start_paused = true)]
async fn bug_014_a_timeout_outside_neither_stops_the_run_nor_hides_its_answer() {
    let runs = Runs::default();
    let outside =
        ServiceBuilder::new().layer(timeout()).map_response(plain).layer(layer()).service(slow(&runs));
    assert_eq!(ask(&outside, post("k", "a")).await.status, 408);
    tokio::time::sleep(ms(1300)).await;
    let retry = ask(&outside, post("k", "a")).await;
    assert_eq!((retry.status, &retry.body[..], retry.is_replay()), (200, &b"1"[..], true));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn bug_014_a_timeout_inside_frees_the_key_or_leaves_it_in_doubt() {
    for (on_server_error, code, counted) in
        [(OnServerError::Release, None, 2), (OnServerError::Hold, Some("outcome-unknown"), 1)]
    {
        let runs = Runs::default();
        let policy = Policy::builder().on_server_error(on_server_error).build().unwrap();
        let inside = ServiceBuilder::new()
            .layer(IdempotencyLayer::with_policy(MemoryStore::new(), policy))
            .layer(timeout())
            .service(slow(&runs));
        assert_eq!(ask(&inside, post("k", "a")).await.status, 408);
        tokio::time::sleep(ms(1300)).await;
        let retry = ask(&inside, post("k", "a")).await;
        match code {
            None => assert_eq!((retry.status, retry.is_replay()), (408, false)),
            Some(code) => assert_eq!(retry.code(), code),
        }
        assert_eq!(runs.load(Ordering::SeqCst), counted);
    }
}

/// 3.6 KB that compress well, so that a compression layer takes them up.
fn prose(_: usize) -> Response<OwnBody> {
    Response::builder()
        .header("content-type", "text/plain")
        .body(boxed(Full::from("to be, or not to be. ".repeat(180))))
        .unwrap()
}

fn accepting(encoding: Option<&str>) -> Request<Full<Bytes>> {
    with(
        encoding.iter().fold(keyed("k"), |request, encoding| request.header("accept-encoding", *encoding)),
        "a",
    )
}

fn is_gzip(answer: &Answer) -> bool {
    let labelled = answer.header("content-encoding") == Some("gzip");
    assert_eq!(labelled, answer.body.starts_with(&[0x1f, 0x8b]), "an answer is what it says it is");
    labelled
}

#[tokio::test]
async fn bug_067_compression_outside_fits_every_caller() {
    let outside = ServiceBuilder::new()
        .layer(CompressionLayer::new())
        .layer(layer())
        .service(counting(&Runs::default(), prose));
    let answers = [
        ask(&outside, accepting(Some("gzip"))).await,
        ask(&outside, accepting(None)).await,
        ask(&outside, accepting(Some("gzip"))).await,
    ];
    assert_eq!(answers.each_ref().map(is_gzip), [true, false, true]);
    assert_eq!(answers.each_ref().map(Answer::is_replay), [false, true, true]);
    assert_eq!(answers[1].body.len(), 3_780);
}

#[tokio::test]
async fn bug_067_compression_inside_keeps_the_label_with_the_bytes() {
    let inside = ServiceBuilder::new()
        .layer(layer())
        .layer(CompressionLayer::new())
        .service(counting(&Runs::default(), prose));
    let first = ask(&inside, accepting(Some("gzip"))).await;
    let replay = ask(&inside, accepting(None)).await;
    assert!(is_gzip(&first) && is_gzip(&replay), "the first caller's encoding, as documented");
    assert_eq!(first.body, replay.body);
}

fn cors() -> CorsLayer {
    let allowed = ["https://a.example", "https://b.example"].map(|origin| origin.parse().unwrap());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(allowed))
        .allow_methods([Method::POST])
        .allow_headers(CORS_ALLOW.map(HeaderName::from_static))
        .expose_headers(CORS_EXPOSE.map(HeaderName::from_static))
}

fn from(origin: &'static str, key: &str, body: &'static str) -> Request<Full<Bytes>> {
    with(keyed(key).header("origin", origin), body)
}

fn allowed(answer: &Answer) -> Vec<&[u8]> {
    answer.headers.get_all("access-control-allow-origin").iter().map(http::HeaderValue::as_bytes).collect()
}

#[tokio::test]
async fn bug_070_browsers_may_send_the_key_and_see_the_marker() {
    let runs = Runs::default();
    let stack = ServiceBuilder::new()
        .layer(cors())
        .map_response(plain)
        .layer(layer())
        .service(counting(&runs, number));
    let preflight = Request::options("/orders")
        .header("origin", "https://a.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "idempotency-key");
    let preflight = ask(&stack, with(preflight, "")).await;
    assert_eq!((preflight.status, runs.load(Ordering::SeqCst)), (200, 0));
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("idempotency-key"));
    ask(&stack, from("https://a.example", "k", "a")).await;
    let replay = ask(&stack, from("https://a.example", "k", "a")).await;
    assert!(replay.is_replay());
    assert!(replay.header("access-control-expose-headers").unwrap().contains("idempotency-replayed"));
}

#[tokio::test]
async fn bug_071_refusals_and_replays_carry_the_callers_own_origin() {
    let runs = Runs::default();
    let outside = ServiceBuilder::new()
        .layer(cors())
        .map_response(plain)
        .layer(layer())
        .service(counting(&runs, number));
    ask(&outside, from("https://a.example", "k", "a")).await;
    let mismatch = ask(&outside, from("https://a.example", "k", "b")).await;
    let invalid = ask(&outside, from("https://a.example", "\"open", "a")).await;
    assert_eq!((mismatch.status, invalid.status), (422, 400));
    for refused in [&mismatch, &invalid] {
        assert_eq!(allowed(refused), [b"https://a.example"]);
    }
    let replay = ask(&outside, from("https://b.example", "k", "a")).await;
    assert!(replay.is_replay());
    assert_eq!(allowed(&replay), [b"https://b.example"]);

    let inside = ServiceBuilder::new().layer(layer()).layer(cors()).service(counting(&runs, number));
    ask(&inside, from("https://a.example", "k", "a")).await;
    let replay = ask(&inside, from("https://b.example", "k", "a")).await;
    assert!(
        replay.is_replay() && allowed(&replay).is_empty(),
        "no field of the first caller's origin: {replay:?}"
    );
}

/// Sends fresh keys, their copies and other payloads, one after another.
async fn drive<S, P>(mut service: S) -> [usize; 3]
where
    S: Service<Request<Full<Bytes>>, Response = Response<P>, Error: std::fmt::Debug>,
    P: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let (mut ran, mut replayed, mut refused) = (0, 0, 0);
    for turn in 0..100 {
        let body = if turn % 4 == 3 { "other" } else { "a" };
        let request = with(keyed(&(turn / 4).to_string()), body);
        let answer = crate::bench::read(service.ready().await.unwrap().call(request).await.unwrap()).await;
        match (answer.status, answer.is_replay()) {
            (200, false) => ran += 1,
            (200, true) => replayed += 1,
            _ => refused += usize::from(answer.code() == "fingerprint-mismatch"),
        }
    }
    [ran, replayed, refused]
}

#[tokio::test]
async fn bug_072_readiness_is_asked_for_and_given_back() {
    let runs = Runs::default();
    let expected = [25, 50, 25];
    let buffered =
        ServiceBuilder::new().layer(layer()).layer(BufferLayer::new(1)).service(counting(&runs, number));
    assert_eq!(drive(buffered).await, expected);
    let limited = ServiceBuilder::new()
        .layer(layer())
        .layer(ConcurrencyLimitLayer::new(1))
        .service(counting(&runs, number));
    assert_eq!(drive(limited).await, expected, "a replay that kept its permit would stop the service");
    let shedding = ServiceBuilder::new()
        .layer(layer())
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(1))
        .service(counting(&runs, number));
    assert_eq!(drive(shedding).await, expected, "nothing is shed");
    let outside = ServiceBuilder::new()
        .layer(BufferLayer::new(1))
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(layer())
        .service(counting(&runs, number));
    assert_eq!(drive(outside).await, expected);
}

#[tokio::test]
async fn bug_078_a_crowd_is_told_when_to_come_back_and_starves_nobody() {
    let gate = Arc::new(Semaphore::new(0));
    let door = Arc::new(Door::new(Policy::builder(), {
        let gate = Arc::clone(&gate);
        move |request| {
            let slow = request.uri().path() == "/orders";
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                if slow {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(Response::new(text("done")))
            })
        }
    }));
    let first = tokio::spawn(door.send(post("k", "a")));
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        let refused = door.send(post("k", "a")).await;
        assert_eq!(refused.code(), "conflict");
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=30).contains(&seconds), "whole seconds, no longer than the lease: {seconds}");
    }
    let other = door.send(with(keyed("other").uri("/other"), "a"));
    assert_eq!(tokio::time::timeout(ms(300), other).await.unwrap().status, 200);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().status, 200);
}
