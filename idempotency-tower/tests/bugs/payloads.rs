//! What counts as the same request.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{Arc, atomic::AtomicUsize},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full, StreamBody};
use idempotency_core::DynStore;
use idempotency_store_contract::faults::Call;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, Policy};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceBuilder, service_fn};
use tower_http::{compression::CompressionLayer, decompression::RequestDecompressionLayer};

use crate::{
    bench::{Counter, ask, boxed, counting, keyed, number, status, with},
    setup::{Answer, Door, policy, post, text},
};

fn counter(policy: idempotency_tower::PolicyBuilder) -> Counter {
    Counter::on(&DynStore::new(MemoryStore::new()), policy)
}

fn assert_refused(answer: &Answer, parts: &[&str]) {
    assert_eq!((answer.status, answer.code().as_str()), (422, "fingerprint-mismatch"), "{answer:?}");
    assert_eq!(answer.problem()["mismatch"], serde_json::json!(parts));
}

#[tokio::test]
async fn bug_037_a_key_used_on_one_route_never_answers_for_another() {
    let counter = counter(Policy::builder());
    let echo = counter.send(with(keyed("k").uri("/echo"), "a")).await;
    let other = counter.send(with(keyed("k").uri("/counter"), "a")).await;
    assert_refused(&other, &["path"]);
    assert_ne!(other.body, echo.body);
    assert_eq!(counter.runs(), 1);
}

#[tokio::test]
async fn bug_039_the_query_is_a_part_of_the_request_and_its_order_counts() {
    let counter = counter(Policy::builder());
    counter.send(with(keyed("k").uri("/echo?to=a&dry=1"), "x")).await;
    for other in ["/echo?to=b&dry=1", "/echo?to=a", "/echo", "/echo?dry=1&to=a"] {
        assert_refused(&counter.send(with(keyed("k").uri(other), "x")).await, &["query"]);
    }
    assert_eq!(counter.runs(), 1);
}

#[tokio::test]
async fn bug_040_the_media_type_is_a_part_of_the_request_and_its_case_is_not() {
    let counter = counter(Policy::builder());
    let typed = |media: &str| with(keyed("k").header("content-type", media), "{}");
    counter.send(typed("application/json")).await;
    assert_refused(&counter.send(typed("text/plain")).await, &["content-type"]);
    assert!(counter.send(typed("Application/JSON")).await.is_replay());
    assert_eq!(counter.runs(), 1);
}

#[tokio::test]
async fn bug_041_the_order_of_json_members_counts_unless_that_was_chosen() {
    let json = |body: &'static str| with(keyed("k").header("content-type", "application/json"), body);
    let raw = counter(Policy::builder());
    raw.send(json(r#"{"a":1,"b":2}"#)).await;
    assert_refused(&raw.send(json(r#"{"b":2,"a":1}"#)).await, &["body"]);
    let canonical = counter(Policy::builder().canonical_json());
    canonical.send(json(r#"{"a":[1,2],"b":"1"}"#)).await;
    assert!(canonical.send(json("{\"b\": \"1\",\n  \"a\": [1, 2]}")).await.is_replay());
    for other in [r#"{"a":[2,1],"b":"1"}"#, r#"{"a":[1,2],"b":1}"#] {
        assert_refused(&canonical.send(json(other)).await, &["body"]);
    }
    assert_eq!((raw.runs(), canonical.runs()), (1, 1));
}

#[tokio::test]
async fn bug_043_a_new_boundary_is_another_payload_unless_forms_are_read() {
    let form = |boundary: &str, name: &str, file: &str| {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{file}\r\n--{boundary}--\r\n"
        );
        with(keyed("k").header("content-type", format!("multipart/form-data; boundary={boundary}")), body)
    };
    let raw = counter(Policy::builder());
    raw.send(form("AAA111", "a.txt", "one")).await;
    assert_refused(&raw.send(form("BBB222", "a.txt", "one")).await, &["body"]);
    let read = counter(Policy::builder().multipart_by_part());
    read.send(form("AAA111", "a.txt", "one")).await;
    assert!(read.send(form("BBB222", "a.txt", "one")).await.is_replay());
    assert_refused(&read.send(form("AAA111", "a.txt", "onE")).await, &["body"]);
    assert_refused(&read.send(form("AAA111", "b.txt", "one")).await, &["body"]);
    assert_eq!((raw.runs(), read.runs()), (1, 1));
}

#[tokio::test]
async fn bug_044_headers_that_are_made_for_one_try_do_not_count() {
    let runs = Arc::<AtomicUsize>::default();
    let tries = Arc::new(AtomicUsize::new(0));
    let stack = ServiceBuilder::new()
        .map_request(move |mut request: Request<Full<Bytes>>| {
            let id = tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            request.headers_mut().insert("x-request-id", id.into());
            request
        })
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .service(counting(&runs, number));
    let attempt = |number: &str| {
        let mut request = keyed("k");
        for name in ["user-agent", "traceparent", "accept-encoding", "x-signature", "x-correlation-id"] {
            request = request.header(name, number);
        }
        with(request, "a")
    };
    assert!(!ask(&stack, attempt("1")).await.is_replay());
    assert!(ask(&stack, attempt("2")).await.is_replay());
}

#[tokio::test]
async fn bug_045_a_mismatch_neither_changes_nor_frees_the_record() {
    let door = Door::new(policy(), |request| {
        Box::pin(async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok(Response::builder().status(201).body(boxed(Full::from(body))).unwrap())
        })
    });
    let first = door.send(post("k", "one")).await;
    assert_eq!((first.status, &first.body[..]), (201, &b"one"[..]));
    assert_refused(&door.send(post("k", "two")).await, &["body"]);
    let replay = door.send(post("k", "one")).await;
    assert!(replay.is_replay() && replay.body == "one");
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn bug_045_another_body_is_refused_while_the_first_one_runs() {
    let gate = Arc::new(Semaphore::new(0));
    let door = Door::new(policy(), {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text("one")))
            })
        }
    });
    // Both race from the start: the runtime of the test has one thread, so whichever is polled first runs.
    let racing =
        tokio::spawn(futures_util::future::join(door.send(post("k", "one")), door.send(post("k", "two"))));
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
    assert_refused(&door.send(post("k", "three")).await, &["body"]);
    gate.add_permits(2);
    let (one, two) = racing.await.unwrap();
    let (ran, refused) = if one.status == 200 { (one, two) } else { (two, one) };
    assert_eq!((ran.status, door.runs()), (200, 1));
    assert_refused(&refused, &["body"]);
}

/// A body that says how long it is, or not, and of which no byte may be read.
struct Untouched(Option<u64>);

impl Body for Untouched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("the body was read");
    }

    fn size_hint(&self) -> SizeHint {
        self.0.map(SizeHint::with_exact).unwrap_or_default()
    }
}

#[tokio::test]
async fn bug_047_the_bytes_that_come_are_counted_not_those_that_were_declared() {
    let runs = Arc::<AtomicUsize>::default();
    let layer = IdempotencyLayer::with_policy(
        MemoryStore::new(),
        Policy::builder().max_request_bytes(64 << 10).build().unwrap(),
    );
    let service = layer.layer(counting(&runs, number));
    let chunked = |chunks: usize| {
        let frames = (0..chunks).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 1000]))));
        keyed("k").body(StreamBody::new(futures_util::stream::iter(frames))).unwrap()
    };
    let refused = ask(&service, chunked(200)).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "payload-too-large"));
    let small = ask(&service, chunked(1)).await;
    assert_eq!((small.status, &small.body[..]), (200, &b"1"[..]), "not run before, and no claim left");
}

#[tokio::test]
async fn bug_048_a_body_too_large_is_refused_unread_and_an_unkeyed_one_is_never_buffered() {
    let limit = 64 << 10;
    let door = Door::answering(policy().max_request_bytes(limit), || status(200, "done"));
    let exact = with(keyed("exact"), vec![b'x'; limit]);
    assert_eq!(door.send(exact).await.status, 200);
    let over = door.send(with(keyed("over"), vec![b'x'; limit + 1])).await;
    assert_eq!((over.status, door.faults.calls(Call::Claim)), (413, 1));

    let runs = Arc::<AtomicUsize>::default();
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let service = layer.layer(counting(&runs, number));
    let declared = ask(&service, keyed("k").body(Untouched(Some(10 << 20))).unwrap()).await;
    assert_eq!(declared.code(), "payload-too-large");
    let unkeyed = Request::post("/uploads").body(Untouched(None)).unwrap();
    assert_eq!(ask(&service, unkeyed).await.status, 200);
}

/// `hello`, compressed; the bytes 4 to 7 of the format are a time.
fn hello(time: u8) -> Vec<u8> {
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0];
    gzip.extend([0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0]);
    gzip[4] = time;
    gzip
}

#[tokio::test]
async fn bug_049_outside_decompression_makes_one_payload_of_all_spellings() {
    let runs = Arc::<AtomicUsize>::default();
    let outside = ServiceBuilder::new()
        .layer(RequestDecompressionLayer::new())
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .service(counting(&runs, number));
    let gzip = |key: &str, time| with(keyed(key).header("content-encoding", "gzip"), hello(time));
    assert!(!ask(&outside, gzip("k", 1)).await.is_replay());
    assert!(ask(&outside, gzip("k", 99)).await.is_replay());
    assert!(ask(&outside, with(keyed("k"), "hello")).await.is_replay());

    let inside = ServiceBuilder::new()
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .layer(RequestDecompressionLayer::new())
        .service(counting(&runs, number));
    assert!(!ask(&inside, gzip("k", 1)).await.is_replay());
    assert_refused(&ask(&inside, gzip("k", 99)).await, &["body"]);
    assert_refused(&ask(&inside, with(keyed("k"), "hello")).await, &["content-encoding", "body"]);
}

#[tokio::test]
async fn bug_049_what_expands_past_the_limit_is_refused() {
    let zeros = CompressionLayer::new().layer(service_fn(async |_: Request<Full<Bytes>>| {
        Ok::<_, io::Error>(Response::new(Full::<Bytes>::from(vec![0_u8; 8 << 20])))
    }));
    let bomb = ask(&zeros, with(Request::get("/").header("accept-encoding", "gzip"), "")).await.body;
    assert!(bomb.len() < 64 << 10, "it is small until it is opened: {}", bomb.len());
    let runs = Arc::<AtomicUsize>::default();
    let service = ServiceBuilder::new()
        .layer(RequestDecompressionLayer::new())
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .service(counting(&runs, number));
    let refused = ask(&service, with(keyed("k").header("content-encoding", "gzip"), bomb)).await;
    assert_eq!((refused.status, refused.code().as_str()), (413, "payload-too-large"));
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 0);
}
