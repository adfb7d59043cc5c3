//! The pages of the fixture contract on actix-web.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use actix_web::{
    HttpRequest, HttpResponse, Resource,
    guard::{self, GuardContext},
    http::{Method, StatusCode, header},
    rt::time::sleep,
    web::{self, Data, Path, Query, ServiceConfig},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use futures_util::stream;
use serde::Deserialize;
use uuid::Uuid;

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

/// Adds the pages that stand behind the layer.
pub fn inside(service: &mut ServiceConfig) {
    service
        .service(web::resource("/echo").route(web::post().to(echo)).route(web::patch().to(echo)))
        .route("/status/{code}", web::post().to(status))
        .route("/slow", web::post().to(slow))
        .service(web::resource("/counter").route(web::post().to(counter)).route(web::get().to(runs)))
        .route("/stream", web::post().to(data_stream))
        .route("/headers", web::post().to(headers))
        .route("/large", web::post().to(large))
        .route("/gzip", web::post().to(gzip))
        .route("/panic", web::post().to(panic));
}

/// `GET /counter` without a key, beside the layer. A layer that remembers reads as well leaves the suite without its count
/// of runs.
pub fn count_beside() -> Resource {
    let has_no_key = |request: &GuardContext<'_>| !request.head().headers().contains_key("idempotency-key");
    web::resource("/counter")
        .guard(guard::Get())
        .guard(guard::fn_guard(has_no_key))
        .route(web::get().to(runs))
}

/// The page outside the layer: starts the count of runs anew.
pub async fn reset(site: Data<Site>) -> HttpResponse {
    site.runs.store(0, Ordering::SeqCst);
    HttpResponse::NoContent().finish()
}

async fn echo(site: Data<Site>, request: HttpRequest, body: Bytes) -> HttpResponse {
    if request.method() == Method::POST {
        site.count_run();
    }
    let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
    let content_type = content_type.unwrap_or(header::HeaderValue::from_static("application/octet-stream"));
    HttpResponse::Created().insert_header((header::CONTENT_TYPE, content_type)).body(body)
}

async fn status(site: Data<Site>, code: Path<u16>, _whole: Bytes) -> HttpResponse {
    let code = code.into_inner();
    let status = (200..600).contains(&code).then(|| StatusCode::from_u16(code).ok()).flatten();
    let Some(status) = status else {
        return text(StatusCode::BAD_REQUEST, "the status is not between 200 and 599");
    };
    site.count_run();
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => HttpResponse::new(status),
        _ => text(status, format!("status:{code}")),
    }
}

/// How long a page sleeps.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pause {
    ms: u64,
}

async fn slow(site: Data<Site>, pause: Query<Pause>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    sleep(Duration::from_millis(pause.ms)).await;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/plain"));
    response.insert_header(("x-run", Uuid::new_v4().to_string())).body(format!("slept:{}", pause.ms))
}

async fn counter(site: Data<Site>, pause: Query<Pause>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    let count = site.count.fetch_add(1, Ordering::SeqCst) + 1;
    sleep(Duration::from_millis(pause.ms)).await;
    json(StatusCode::OK, format!(r#"{{"count":{count}}}"#))
}

async fn runs(site: Data<Site>) -> HttpResponse {
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

async fn data_stream(site: Data<Site>, asked: Query<Chunks>, _whole: Bytes) -> HttpResponse {
    let Chunks { chunks, interval_ms, fail_after, ct } = asked.into_inner();
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
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, ct)).streaming(data)
}

async fn headers(site: Data<Site>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    let mut response = HttpResponse::Created();
    for field in [
        ("set-cookie", "a=1; Path=/"),
        ("set-cookie", "b=2; Path=/"),
        ("link", "</orders/1>; rel=\"self\""),
        ("link", "</orders>; rel=\"up\""),
        ("x-multi", "one"),
        ("x-multi", "two"),
        ("location", "/orders/1"),
        ("etag", "\"v1\""),
        ("content-type", "application/json"),
    ] {
        response.append_header(field);
    }
    response.body(format!(r#"{{"run":"{}"}}"#, Uuid::new_v4()))
}

/// How long a body is.
#[derive(Debug, Deserialize)]
struct Size {
    bytes: usize,
}

async fn large(site: Data<Site>, size: Query<Size>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    let bytes = vec![b'x'; size.bytes];
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, "application/octet-stream")).body(bytes)
}

async fn gzip(site: Data<Site>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    let text = format!("run {}", Uuid::new_v4());
    let written = compressed.write_all(text.as_bytes()).and_then(|()| compressed.finish());
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain"))
        .insert_header((header::CONTENT_ENCODING, "gzip"))
        .body(written.expect("memory takes what is written to it"))
}

async fn panic(site: Data<Site>, _whole: Bytes) -> HttpResponse {
    site.count_run();
    panic!("the panic page panics");
}

fn text(status: StatusCode, text: impl Into<String>) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CONTENT_TYPE, "text/plain")).body(text.into())
}

fn json(status: StatusCode, text: String) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CONTENT_TYPE, "application/json")).body(text)
}
