//! The caller's side, in front of the guard it is made for: what is sent, how often, with which key.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use idempotency_core::{Part, StoreErrorKind};
use idempotency_store_contract::faults::{Call, Fault, Faults, Faulty};
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{
    BoxError, IdempotencyLayer, IdempotencyService, Key, KeySyntax, RequestBody, ResponseBody,
    client::{KeyLayer, Misuse, OperationKey, PeekedBody, RetryLayer, RetryTerms, Spelling},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};
use tower::{
    Layer, ServiceBuilder, ServiceExt,
    limit::ConcurrencyLimitLayer,
    retry, service_fn,
    util::{BoxCloneService, BoxCloneSyncService},
};

type Outgoing = Request<Full<Bytes>>;
type Handler = BoxCloneSyncService<Request<RequestBody<Full<Bytes>>>, Response<Full<Bytes>>, Infallible>;
type Server = IdempotencyService<Handler, Faulty<MemoryStore>>;
type Incoming = Response<ResponseBody<Full<Bytes>>>;
type Answered = Response<PeekedBody<ResponseBody<Full<Bytes>>>>;

const SECOND: Duration = Duration::from_secs(1);

/// What is lost of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    Request,
    Answer,
}

/// A guarded server behind a wire that loses what it is told to.
struct Shop {
    server: Server,
    store: Faults,
    runs: Arc<AtomicUsize>,
    wire: Arc<Wire>,
}

#[derive(Debug, Default)]
struct Wire {
    to_lose: Mutex<VecDeque<Lost>>,
    keys: Mutex<Vec<Option<HeaderValue>>>,
    refused: Notify,
}

impl Shop {
    fn new<F>(handler: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Response<Full<Bytes>>> + Clone + Send + Sync + 'static,
    {
        let (store, faults) = Faulty::new(MemoryStore::new());
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = service_fn(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = handler();
            async { Ok(answer.await) }
        });
        let server = IdempotencyLayer::new(store).layer(BoxCloneSyncService::new(handler));
        Self { server, store: faults, runs, wire: Arc::default() }
    }

    fn answering(answer: impl Fn() -> Response<Full<Bytes>> + Clone + Send + Sync + 'static) -> Self {
        Self::new(move || Box::pin(std::future::ready(answer())))
    }

    fn selling() -> Self {
        Self::answering(|| Response::builder().status(201).body(Full::from("order 1")).unwrap())
    }

    fn lose(&self, lost: impl IntoIterator<Item = Lost>) {
        self.wire.to_lose.lock().unwrap().extend(lost);
    }

    /// What stands on the other end of the wire, for a client's layers to wrap.
    fn line(&self) -> BoxCloneService<Outgoing, Incoming, BoxError> {
        let (server, wire) = (self.server.clone(), Arc::clone(&self.wire));
        BoxCloneService::new(service_fn(move |request| carry(Arc::clone(&wire), server.clone(), request)))
    }

    fn client(&self, keys: KeyLayer, terms: RetryTerms) -> BoxCloneService<Outgoing, Answered, BoxError> {
        let layers = ServiceBuilder::new().layer(keys).layer(RetryLayer::new(terms));
        BoxCloneService::new(layers.service(self.line()))
    }

    async fn send(&self, request: Outgoing) -> Result<Answered, BoxError> {
        self.client(KeyLayer::new(), RetryTerms::default()).oneshot(request).await
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// The key header of every try, as it was sent.
    fn keys(&self) -> Vec<Option<HeaderValue>> {
        self.wire.keys.lock().unwrap().clone()
    }
}

async fn carry(wire: Arc<Wire>, server: Server, request: Outgoing) -> Result<Incoming, BoxError> {
    wire.keys.lock().unwrap().push(request.headers().get("idempotency-key").cloned());
    let lost = wire.to_lose.lock().unwrap().pop_front().unwrap_or(Lost::Nothing);
    if lost == Lost::Request {
        return Err("the request was lost".into());
    }
    let response = server.oneshot(request).await.unwrap_or_else(|never| match never {});
    if response.status() == 409 {
        wire.refused.notify_one();
    }
    if lost == Lost::Answer {
        return Err("the answer was lost".into());
    }
    Ok(response)
}

fn order(body: &'static str) -> Outgoing {
    Request::post("http://shop.example/orders").body(Full::from(body)).unwrap()
}

fn keyed(key: &'static str, body: &'static str) -> Outgoing {
    let mut request = order(body);
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
    request
}

fn bound(key: &OperationKey, body: &'static str) -> Outgoing {
    let mut request = order(body);
    request.extensions_mut().insert(key.clone());
    request
}

fn is_replay<B>(response: &Response<B>) -> bool {
    response.headers().contains_key("idempotency-replayed")
}

async fn text(response: Answered) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn problem(problem_type: &'static str, status: u16) -> Response<Full<Bytes>> {
    let document = format!(r#"{{"type":"{problem_type}","status":{status},"code":"conflict"}}"#);
    let response = Response::builder().status(status).header("content-type", "application/problem+json");
    response.header("retry-after", "3600").body(Full::from(document)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_copy_in_flight_is_waited_for_and_then_replayed() {
    let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, opens) = (Arc::clone(&begun), Arc::clone(&gate));
    let shop = Shop::new(move || {
        let (begins, opens) = (Arc::clone(&begins), Arc::clone(&opens));
        Box::pin(async move {
            begins.notify_one();
            opens.notified().await;
            Response::new(Full::from("order 1"))
        })
    });
    let first = tokio::spawn(shop.server.clone().oneshot(keyed("k", "tea")));
    begun.notified().await;
    let wire = Arc::clone(&shop.wire);
    tokio::spawn(async move {
        wire.refused.notified().await;
        gate.notify_one();
    });

    let sent = Instant::now();
    let answer = timeout(60 * SECOND, shop.send(keyed("k", "tea"))).await.unwrap().unwrap();
    assert!(is_replay(&answer));
    assert_eq!(text(answer).await, "order 1");
    assert!(!is_replay(&first.await.unwrap().unwrap()));
    assert_eq!((shop.runs(), shop.keys().len()), (1, 2));
    // `Retry-After` says 30, or a little less when the machine is slow.
    assert!((25 * SECOND..=31 * SECOND).contains(&sent.elapsed()), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_conflict_of_the_application_is_an_answer() {
    for answer in [
        || Response::builder().status(409).header("retry-after", "1").body(Full::from("sold out")).unwrap(),
        || problem("https://shop.example/problems/conflict", 409),
        || problem("https://shop.example/problems/conflict", 503),
    ] {
        let expected = answer().into_body().collect().await.unwrap().to_bytes();
        let shop = Shop::answering(answer);
        let sent = Instant::now();
        let response = shop.send(order("tea")).await.unwrap();
        assert_eq!(response.status(), answer().status());
        assert_eq!(text(response).await, expected, "what was looked into is whole");
        assert_eq!((shop.keys().len(), sent.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_replayed_and_the_effect_happens_once() {
    let shop = Shop::selling();
    shop.lose([Lost::Request, Lost::Answer, Lost::Answer]);
    let answer = shop.send(order("tea")).await.unwrap();
    assert!(is_replay(&answer));
    assert_eq!(answer.status(), 201);
    assert_eq!(text(answer).await, "order 1");
    assert_eq!((shop.runs(), shop.keys().len()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn tries_share_a_key_and_logical_requests_do_not() {
    let shop = Shop::selling();
    shop.lose([Lost::Request, Lost::Answer]);
    shop.send(order("tea")).await.unwrap();
    shop.send(order("tea")).await.unwrap();
    let keys: Vec<_> = shop.keys().into_iter().map(Option::unwrap).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "the keys are another's");
    assert_eq!(shop.runs(), 2);
    let key = KeySyntax::Strict.read([keys[0].as_bytes()]).unwrap().unwrap();
    assert_eq!(uuid::Uuid::parse_str(key.as_str()).unwrap().get_version_num(), 4);
    assert!(keys[0].is_sensitive());
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_callers_own_is_kept_as_it_is_spelled() {
    let shop = Shop::selling();
    shop.lose([Lost::Answer]);
    shop.send(keyed("order-4711", "tea")).await.unwrap();
    let keys: Vec<_> = shop.keys().into_iter().map(Option::unwrap).collect();
    assert_eq!(keys, ["order-4711", "order-4711"]);
    assert!(keys.iter().all(HeaderValue::is_sensitive));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_covered_gets_no_key_and_one_try() {
    let shop = Shop::selling();
    shop.lose([Lost::Request]);
    let stock = Request::get("http://shop.example/stock").body(Full::default()).unwrap();
    shop.send(stock).await.unwrap_err();
    assert_eq!(shop.keys(), [None]);
}

#[tokio::test(start_paused = true)]
async fn methods_header_and_spelling_are_the_clients_to_choose() {
    let seen = |keys: KeyLayer, method| async move {
        let echo = service_fn(async |request: Outgoing| {
            Ok::<_, BoxError>(request.headers().get("x-request-key").cloned())
        });
        let request = Request::builder().method(method).body(Full::<Bytes>::default()).unwrap();
        keys.layer(echo).oneshot(request).await.unwrap()
    };
    let keys = KeyLayer::new()
        .methods([Method::PUT])
        .header(HeaderName::from_static("x-request-key"))
        .spelling(Spelling::Bare);
    let bare = seen(keys.clone(), Method::PUT).await.unwrap();
    assert!(uuid::Uuid::parse_str(bare.to_str().unwrap()).is_ok());
    assert_eq!(seen(keys, Method::POST).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_operation_key_is_sent_again_with_its_own_request_alone() {
    let shop = Shop::selling();
    let key = OperationKey::from(Key::new("order 4711").unwrap());
    assert!(!is_replay(&shop.send(bound(&key, "tea")).await.unwrap()));
    assert!(is_replay(&shop.send(bound(&key, "tea")).await.unwrap()));

    let misuse = shop.send(bound(&key, "coffee")).await.unwrap_err();
    let Some(Misuse::OtherRequest { differing }) = misuse.downcast_ref() else { panic!("{misuse}") };
    assert_eq!(differing.iter().map(Part::name).collect::<Vec<_>>(), ["body"]);
    assert_eq!(shop.keys().len(), 2, "nothing was sent");
    assert_eq!(shop.keys()[0].as_ref().unwrap(), "\"order 4711\"");
}

#[tokio::test(start_paused = true)]
async fn a_request_with_two_keys_or_one_that_cannot_be_written_is_not_sent() {
    let shop = Shop::selling();
    let key = OperationKey::from(Key::new("order 4711").unwrap());
    let mut both = bound(&key, "tea");
    both.headers_mut().insert("idempotency-key", HeaderValue::from_static("k"));
    let error = shop.send(both).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Misuse::TwoKeys));

    let bare = shop.client(KeyLayer::new().spelling(Spelling::Bare), RetryTerms::default());
    let error = bare.oneshot(bound(&key, "tea")).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Misuse::NeedsQuotes));
    assert_eq!(shop.keys(), []);
}

#[tokio::test(start_paused = true)]
async fn an_operation_key_is_kept_through_the_tries_of_one_call() {
    let shop = Shop::selling();
    shop.lose([Lost::Answer]);
    let key = OperationKey::random();
    assert!(is_replay(&shop.send(bound(&key, "tea")).await.unwrap()));
    assert_eq!(shop.runs(), 1);
    assert!(shop.keys()[0].as_ref().unwrap().to_str().unwrap().contains(key.key().as_str()));
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_is_waited_out() {
    let shop = Shop::selling();
    shop.store.once(Call::Claim, Fault::Fails(StoreErrorKind::Unavailable));
    shop.store.once(Call::Claim, Fault::Fails(StoreErrorKind::Full));
    let sent = Instant::now();
    let answer = shop.send(order("tea")).await.unwrap();
    assert_eq!((answer.status().as_u16(), shop.runs(), shop.keys().len()), (201, 1, 3));
    assert!((2 * SECOND..=SECOND * 5 / 2).contains(&sent.elapsed()), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn tries_are_counted_and_the_last_refusal_is_given_on_whole() {
    let shop = Shop::selling();
    shop.store.set(Call::Claim, Fault::Fails(StoreErrorKind::Unavailable));
    let client = shop.client(KeyLayer::new(), RetryTerms::default().max_retries(2));
    let answer = client.oneshot(order("tea")).await.unwrap();
    assert_eq!((answer.status().as_u16(), shop.keys().len()), (503, 3));
    assert!(text(answer).await.contains("store-unavailable"));
}

#[tokio::test(start_paused = true)]
async fn no_wait_is_longer_than_the_cap_and_none_passes_the_deadline() {
    let base = "https://shop.example/problems/";
    let shop = Shop::answering(|| problem("https://shop.example/problems/conflict", 409));
    // The server does not read this header, so that every try runs and none is marked as a replay.
    let keys = KeyLayer::new().header(HeaderName::from_static("x-request-key"));
    let terms = RetryTerms::default().problem_base(base).max_wait(7 * SECOND);
    let sent = Instant::now();
    let client = shop.client(keys.clone(), terms.clone().max_retries(3));
    assert_eq!(client.oneshot(order("tea")).await.unwrap().status(), 409);
    assert_eq!((shop.runs(), sent.elapsed()), (4, 21 * SECOND));

    let sent = Instant::now();
    let client = shop.client(keys, terms.give_up_after(15 * SECOND));
    assert_eq!(client.oneshot(order("tea")).await.unwrap().status(), 409);
    assert_eq!((shop.runs(), sent.elapsed()), (4 + 3, 14 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_error_of_the_last_try_is_given_on() {
    let shop = Shop::selling();
    shop.lose([Lost::Request; 9]);
    let sent = Instant::now();
    let error = shop.send(order("tea")).await.unwrap_err();
    assert_eq!(error.to_string(), "the request was lost");
    assert_eq!(shop.keys().len(), 5);
    // 100 + 200 + 400 + 800 ms, and a quarter at most.
    assert!((1500..=1875).contains(&sent.elapsed().as_millis()), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_service_is_ready_before_every_try() {
    let shop = Shop::selling();
    shop.lose([Lost::Request, Lost::Answer]);
    let layers = ServiceBuilder::new().layer(KeyLayer::new()).layer(RetryLayer::default());
    // This limit panics when it is called without a permit, and hangs when a try keeps the one there is.
    let client = layers.layer(ConcurrencyLimitLayer::new(1)).service(shop.line());
    for key in [OperationKey::random(), OperationKey::random()] {
        let answer = timeout(60 * SECOND, client.clone().oneshot(bound(&key, "tea"))).await.unwrap();
        assert_eq!(answer.unwrap().status(), 201);
    }
    assert_eq!(shop.keys().len(), 4);
}

/// A policy of tower's own that knows nothing of keys.
#[derive(Clone)]
struct Twice(u32);

impl<R, E> retry::Policy<Outgoing, R, E> for Twice {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, _: &mut Outgoing, result: &mut Result<R, E>) -> Option<Self::Future> {
        self.0 = self.0.checked_sub(1)?;
        result.is_err().then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Outgoing) -> Option<Outgoing> {
        Some(request.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn towers_own_retries_share_the_key_too() {
    let shop = Shop::selling();
    shop.lose([Lost::Answer]);
    let layers = ServiceBuilder::new().layer(KeyLayer::new()).layer(retry::RetryLayer::new(Twice(1)));
    let answer = layers.service(shop.line()).oneshot(order("tea")).await.unwrap();
    assert!(is_replay(&answer));
    assert_eq!(shop.keys()[0], shop.keys()[1]);
}
