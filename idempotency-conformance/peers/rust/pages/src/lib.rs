//! The pages of the fixture contract on axum, and the server around them.

use std::{
    convert::Infallible,
    io::{self, Write},
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;
use serde::Deserialize;
use tokio::{net::TcpListener, time::sleep};
use uuid::Uuid;

/// The header that tells callers apart, where an implementation can.
pub const CALLER: &str = "x-caller";

/// What the pages share.
#[derive(Debug, Default)]
pub struct Site {
    /// Runs of POST pages since the last reset.
    runs: AtomicU64,
    /// The counter page's own number, which no other page moves.
    count: AtomicU64,
}

impl Site {
    fn count_run(&self) {
        self.runs.fetch_add(1, Ordering::SeqCst);
    }
}

type Shared = State<Arc<Site>>;

/// The pages that stand behind a layer.
pub fn inside() -> Router<Arc<Site>> {
    Router::new()
        .route("/echo", post(echo).patch(echo))
        .route("/status/{code}", post(status))
        .route("/slow", post(slow))
        .route("/counter", post(counter).get(runs))
        .route("/stream", post(data_stream))
        .route("/headers", post(headers))
        .route("/large", post(large))
        .route("/gzip", post(gzip))
        .route("/panic", post(panic))
        // Who refuses a long request is the layer, or nobody.
        .layer(DefaultBodyLimit::disable())
}

/// Answers `GET /counter` beside a layer, as long as it has no key, and lets everything else through.
///
/// A layer that wants a key of reads as well, or remembers them, leaves the suite without its count of runs.
pub async fn count_beside(State(site): Shared, request: Request, next: Next) -> Response {
    let is_the_count = request.method() == Method::GET && request.uri().path() == "/counter";
    if is_the_count && !request.headers().contains_key("idempotency-key") {
        return runs(State(site)).await;
    }
    next.run(request).await
}

/// Serves `guarded`, and the one page outside a layer, on the port of the command line (`--port N`; 0, the default, takes
/// a free one); says where, and what is unlike the peer's defaults.
///
/// # Errors
/// The port cannot be bound.
pub async fn serve(site: Arc<Site>, guarded: Router<Arc<Site>>, deviations: &[&str]) -> io::Result<()> {
    let app = guarded.route("/reset", post(reset)).with_state(site);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port_of_the_command_line())).await?;
    for deviation in deviations {
        println!("deviation: {deviation}");
    }
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await
}

/// The number after `--port`.
///
/// # Panics
/// When it is no port.
pub fn port_of_the_command_line() -> u16 {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--port");
    arguments.nth(1).map_or(0, |port| port.parse().expect("the port is a number"))
}

async fn reset(State(site): Shared) -> StatusCode {
    site.runs.store(0, Ordering::SeqCst);
    StatusCode::NO_CONTENT
}

async fn echo(State(site): Shared, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::POST {
        site.count_run();
    }
    let content_type = headers.get(header::CONTENT_TYPE).cloned();
    of_type(
        StatusCode::CREATED,
        content_type.unwrap_or(HeaderValue::from_static("application/octet-stream")),
        body,
    )
}

async fn status(State(site): Shared, Path(code): Path<u16>, _whole: Bytes) -> Response {
    let Some(status) = (200..600).contains(&code).then(|| StatusCode::from_u16(code).ok()).flatten() else {
        return text(StatusCode::BAD_REQUEST, "the status is not between 200 and 599");
    };
    site.count_run();
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => status.into_response(),
        _ => text(status, format!("status:{code}")),
    }
}

/// How long a page sleeps.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pause {
    ms: u64,
}

async fn slow(State(site): Shared, Query(Pause { ms }): Query<Pause>, _whole: Bytes) -> Response {
    site.count_run();
    sleep(Duration::from_millis(ms)).await;
    let mut response = text(StatusCode::OK, format!("slept:{ms}"));
    response.headers_mut().insert("x-run", uuid_value());
    response
}

async fn counter(State(site): Shared, Query(Pause { ms }): Query<Pause>, _whole: Bytes) -> Response {
    site.count_run();
    let count = site.count.fetch_add(1, Ordering::SeqCst) + 1;
    sleep(Duration::from_millis(ms)).await;
    json(StatusCode::OK, format!(r#"{{"count":{count}}}"#))
}

async fn runs(State(site): Shared) -> Response {
    let count = site.runs.load(Ordering::SeqCst);
    json(StatusCode::OK, format!(r#"{{"count":{count},"read":"{}"}}"#, Uuid::new_v4()))
}

/// What a stream is made of.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct Chunks {
    chunks: u32,
    interval_ms: u64,
    fail_after: Option<u32>,
    ct: String,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { chunks: 3, interval_ms: 0, fail_after: None, ct: "text/plain".to_owned() }
    }
}

async fn data_stream(State(site): Shared, Query(asked): Query<Chunks>, _whole: Bytes) -> Response {
    let Chunks { chunks, interval_ms, fail_after, ct } = asked;
    let Ok(content_type) = HeaderValue::try_from(ct) else {
        return text(StatusCode::BAD_REQUEST, "the content type cannot be sent");
    };
    site.count_run();
    let run = Uuid::new_v4();
    let data = stream::unfold(0, move |sent| async move {
        if sent == chunks {
            return None;
        }
        if sent > 0 {
            sleep(Duration::from_millis(interval_ms)).await;
        }
        if fail_after.is_some_and(|fail_after| sent >= fail_after) {
            return Some((Err(io::Error::other("the stream breaks off, as asked")), sent));
        }
        Some((Ok(Bytes::from(format!("data: {sent} of {run}\n\n"))), sent + 1))
    });
    let mut response = Response::new(Body::from_stream(data));
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

async fn headers(State(site): Shared, _whole: Bytes) -> Response {
    site.count_run();
    let mut response = json(StatusCode::CREATED, format!(r#"{{"run":"{}"}}"#, Uuid::new_v4()));
    for (name, value) in [
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2; Path=/"),
        ("link", "</orders/1>; rel=\"self\""),
        ("link", "</orders>; rel=\"up\""),
        ("x-multi", "one"),
        ("x-multi", "two"),
        ("location", "/orders/1"),
        ("etag", "\"v1\""),
    ] {
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response
}

/// How long a body is.
#[derive(Debug, Deserialize)]
struct Size {
    bytes: usize,
}

async fn large(State(site): Shared, Query(Size { bytes }): Query<Size>, _whole: Bytes) -> Response {
    site.count_run();
    of_type(StatusCode::OK, HeaderValue::from_static("application/octet-stream"), vec![b'x'; bytes])
}

async fn gzip(State(site): Shared, _whole: Bytes) -> Response {
    site.count_run();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    let line = format!("run {}", Uuid::new_v4());
    let written = compressed.write_all(line.as_bytes()).and_then(|()| compressed.finish());
    let mut response = text(StatusCode::OK, written.expect("memory takes what is written to it"));
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

async fn panic(State(site): Shared, _whole: Bytes) -> Result<StatusCode, Infallible> {
    site.count_run();
    panic!("the panic page panics");
}

fn text(status: StatusCode, text: impl Into<Body>) -> Response {
    of_type(status, HeaderValue::from_static("text/plain"), text)
}

fn json(status: StatusCode, text: String) -> Response {
    of_type(status, HeaderValue::from_static("application/json"), text)
}

fn of_type(status: StatusCode, content_type: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

fn uuid_value() -> HeaderValue {
    HeaderValue::try_from(Uuid::new_v4().to_string()).expect("a uuid is visible ASCII")
}
