//! What the guard adds behind actix and tonic, each beside its own bare service, in one run and without sockets.

use std::{
    convert::Infallible,
    future::ready,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use actix_web::{App, HttpResponse, body::to_bytes, dev::Service as _, test, web};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use idempotency_actix::Idempotency;
use idempotency_store_memory::MemoryStore;
use idempotency_tonic::GrpcIdempotencyLayer;
use tonic::{Response, Status, body::Body};
use tonic_prost::ProstCodec;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    key::fresh_key,
    latency::Effort,
    statistics::median,
    table::{Row, Table},
};

/// The two ways that are measured: a request without a key, and one whose key is new.
const WAYS: [(&str, bool); 2] = [("no key", false), ("first run", true)];

/// Measures both frameworks and prints the table.
pub async fn compare(effort: Effort) {
    let mut table = Table::new(&["framework", "route", "bare ns", "guarded ns", "added"]);
    for (way, keyed) in WAYS {
        table.push(actix(way, keyed, effort).await);
        table.push(tonic(way, keyed, effort).await);
    }
    print!("{table}");
}

async fn actix(way: &str, keyed: bool, effort: Effort) -> Row {
    let handler = async |body: Bytes| HttpResponse::Created().body(body);
    let bare = test::init_service(App::new().route("/", web::post().to(handler))).await;
    let guard = Idempotency::new(MemoryStore::new());
    let guarded = test::init_service(App::new().wrap(guard).route("/", web::post().to(handler))).await;
    let request = || {
        let request = test::TestRequest::post().uri("/").set_payload(&[b'a'; 256][..]);
        if keyed { request.insert_header(("idempotency-key", fresh_key())) } else { request }.to_request()
    };
    let send_bare = async || {
        let response = bare.call(request()).await.expect("it answers");
        to_bytes(response.into_body()).await.expect("the body is whole");
    };
    let send_guarded = async || {
        let response = guarded.call(request()).await.expect("it answers");
        assert_eq!(response.status(), 201);
        let body = to_bytes(response.into_body()).await;
        assert!(body.is_ok_and(|body| body.len() == 256), "the body is whole");
    };
    race("actix", way, effort, send_bare, send_guarded).await
}

async fn tonic(way: &str, keyed: bool, effort: Effort) -> Row {
    let guarded = GrpcIdempotencyLayer::new(MemoryStore::new()).layer(Echo);
    let send_bare = async || answer(Echo.call(call(keyed)).await).await;
    let send_guarded = async || answer(guarded.clone().call(call(keyed)).await).await;
    race("tonic", way, effort, send_bare, send_guarded).await
}

/// Batches of both in turn; the medians of all.
async fn race(
    framework: &str,
    way: &str,
    effort: Effort,
    bare: impl AsyncFn(),
    guarded: impl AsyncFn(),
) -> Row {
    let (mut of_bare, mut of_guarded) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds * effort.batches {
        of_bare.push(time(&bare, effort.requests).await);
        of_guarded.push(time(&guarded, effort.requests).await);
    }
    let (bare, guarded) = (median(&of_bare), median(&of_guarded));
    vec![
        framework.to_owned(),
        way.to_owned(),
        format!("{bare:.0}"),
        format!("{guarded:.0}"),
        format!("{:+.0}", guarded - bare),
    ]
}

async fn time(send: &impl AsyncFn(), requests: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..requests {
        send().await;
    }
    begun.elapsed().as_nanos() as f64 / requests as f64
}

/// A call whose message is 256 bytes of a field that nobody reads.
fn call(keyed: bool) -> Request<Body> {
    let mut message = vec![0, 0, 0, 0, 0];
    message.extend_from_slice(&[0x0a, 0xfd, 0x01]);
    message.extend_from_slice(&[b'a'; 253]);
    let length = u32::try_from(message.len() - 5).unwrap_or_default();
    message[1..5].copy_from_slice(&length.to_be_bytes());
    let call = Request::post("/bench.Echo/Say").header("content-type", "application/grpc");
    let call = if keyed { call.header("idempotency-key", fresh_key()) } else { call };
    call.body(Body::new(Full::new(Bytes::from(message)))).expect("the call is well-formed")
}

async fn answer(answered: Result<http::Response<Body>, Infallible>) {
    let Ok(response) = answered;
    let whole = response.into_body().collect().await.expect("the body is whole");
    let status = whole.trailers().and_then(|trailers| trailers.get("grpc-status"));
    assert_eq!(status.map(http::HeaderValue::as_bytes), Some(&b"0"[..]));
}

/// A unary method that answers nothing, as generated code calls it.
#[derive(Debug, Clone, Copy)]
struct Echo;

impl Service<Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move {
            Ok(tonic::server::Grpc::new(ProstCodec::<(), ()>::default()).unary(Say, request).await)
        })
    }
}

struct Say;

impl Service<tonic::Request<()>> for Say {
    type Response = Response<()>;
    type Error = Status;
    type Future = std::future::Ready<Result<Response<()>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: tonic::Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}
