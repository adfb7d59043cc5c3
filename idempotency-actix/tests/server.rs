//! A server with workers, over sockets: clients that leave, bodies that stream, workers that stop.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_web::{
    App, HttpResponse, HttpServer,
    body::{BodySize, BoxBody, MessageBody},
    dev::ServerHandle,
    rt, web,
};
use bytes::Bytes;
use futures_util::stream;
use idempotency_actix::{Idempotency, Policy};
use idempotency_store_memory::MemoryStore;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, Semaphore},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// What handlers and tests tell each other.
struct Site {
    runs: AtomicUsize,
    /// A run began.
    began: Notify,
    /// One run, or one more chunk of a stream, may go on.
    may_go_on: Semaphore,
}

impl Default for Site {
    fn default() -> Self {
        Self { runs: AtomicUsize::new(0), began: Notify::new(), may_go_on: Semaphore::new(0) }
    }
}

impl Site {
    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    async fn begin(&self) -> usize {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        self.began.notify_one();
        run
    }

    async fn go_on(&self) {
        self.may_go_on.acquire().await.unwrap().forget();
    }
}

async fn slow(site: web::Data<Site>, body: String) -> HttpResponse {
    let run = site.begin().await;
    site.go_on().await;
    HttpResponse::Created().body(format!("run {run} of {body}"))
}

/// Three chunks; each waits until it may go.
async fn chunks(site: web::Data<Site>) -> HttpResponse {
    let run = site.begin().await;
    HttpResponse::Ok().streaming(stream::unfold(0, move |sent| {
        let site = site.clone();
        async move {
            if sent == 3 {
                return None;
            }
            site.go_on().await;
            Some((Ok::<_, actix_web::Error>(Bytes::from(format!("{run}.{sent} "))), sent + 1))
        }
    }))
}

/// A body that panics after one chunk the first time.
async fn panics_half_way(site: web::Data<Site>) -> HttpResponse {
    let run = site.begin().await;
    HttpResponse::Ok().streaming(stream::unfold(0, move |sent| async move {
        assert!(sent == 0 || run > 1, "the body panics, as asked");
        (sent < 2).then(|| (Ok::<_, actix_web::Error>(Bytes::from("half ")), sent + 1))
    }))
}

struct Server {
    address: SocketAddr,
    handle: ServerHandle,
    site: web::Data<Site>,
    idempotency: Idempotency<MemoryStore>,
    ended: rt::task::JoinHandle<std::io::Result<()>>,
}

impl Server {
    fn start() -> Self {
        Self::on(MemoryStore::new(), web::Data::new(Site::default()), 2)
    }

    fn on(store: MemoryStore, site: web::Data<Site>, workers: usize) -> Self {
        let policy = Policy::builder().max_request_bytes(1_000).build().unwrap();
        let idempotency = Idempotency::with_policy(store, policy);
        let (wrapped, shared) = (idempotency.clone(), site.clone());
        let app = move || {
            App::new()
                .app_data(shared.clone())
                .wrap(wrapped.clone())
                .route("/slow", web::post().to(slow))
                .route("/chunks", web::post().to(chunks))
                .route("/panics", web::post().to(panics_half_way))
        };
        let server = HttpServer::new(app).workers(workers).disable_signals();
        let server = server.shutdown_timeout(1).bind(("127.0.0.1", 0)).unwrap();
        let address = server.addrs()[0];
        let server = server.run();
        Self { address, handle: server.handle(), site, idempotency, ended: rt::spawn(server) }
    }

    async fn open(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// The whole answer, its connection closed after it.
    async fn send(&self, request: &str) -> String {
        read(self.open(request).await).await
    }

    async fn run_began(&self) {
        timeout(PATIENCE, self.site.began.notified()).await.expect("a run begins");
    }

    /// Sends again until the first run's answer is there.
    async fn replay(&self, request: &str) -> String {
        let replayed = async {
            loop {
                let answer = self.send(request).await;
                if !answer.starts_with("HTTP/1.1 409") {
                    return answer;
                }
                rt::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, replayed).await.expect("the run ends")
    }
}

async fn read(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer loses nothing of it.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the server answers");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(text) {
        let read = timeout(PATIENCE, stream.read_buf(&mut answer)).await.expect("more comes").unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn keyed(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\nidempotency-key: k\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn is_replay(answer: &str) -> bool {
    answer.contains("idempotency-replayed: true\r\n")
}

#[actix_web::test]
async fn a_run_goes_on_when_its_client_leaves() {
    let server = Server::start();
    let request = keyed("/slow", "tea");
    let caller = server.open(&request).await;
    server.run_began().await;
    caller.set_zero_linger().unwrap();
    drop(caller); // a reset: actix drops the request's future
    let refused = server.send(&request).await;
    assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("\"conflict\""), "{refused}");
    server.site.may_go_on.add_permits(1);
    let replay = server.replay(&request).await;
    assert!(replay.starts_with("HTTP/1.1 201") && is_replay(&replay), "{replay}");
    assert!(replay.ends_with("run 1 of tea"), "{replay}");
    assert_eq!(server.site.runs(), 1);
}

/// Actix reads such a request to the end of its connection, which the client keeps open for the answer.
#[actix_web::test]
async fn a_websockets_request_with_a_length_is_read_to_that_length() {
    let server = Server::start();
    server.site.may_go_on.add_permits(1);
    let request = keyed("/slow", "tea").replace("content-length", "upgrade: websocket\r\ncontent-length");
    for request in [request.clone(), request + "GET /next HTTP/1.1\r\n"] {
        let mut caller = server.open(&request).await;
        read_until(&mut caller, "run 1 of tea").await;
    }
    assert_eq!(server.site.runs(), 1);
}

#[actix_web::test]
async fn copies_in_all_workers_run_once() {
    let server = Server::start();
    let request = keyed("/slow", "tea");
    let callers: Vec<_> = {
        let mut callers = Vec::new();
        for _ in 0..50 {
            callers.push(rt::spawn(read(server.open(&request).await)));
        }
        callers
    };
    server.run_began().await;
    server.site.may_go_on.add_permits(50);
    let mut runs = 0;
    for caller in callers {
        let answer = timeout(PATIENCE, caller).await.unwrap().unwrap();
        runs += usize::from(answer.starts_with("HTTP/1.1 201") && !is_replay(&answer));
        assert!(answer.ends_with("run 1 of tea") || answer.contains("\"conflict\""), "{answer}");
    }
    assert_eq!((runs, server.site.runs()), (1, 1));
}

#[actix_web::test]
async fn a_stream_reaches_its_client_as_it_comes_and_replays_whole() {
    let server = Server::start();
    let request = keyed("/chunks", "");
    let mut caller = server.open(&request).await;
    server.site.may_go_on.add_permits(1);
    let begun = read_until(&mut caller, "1.0 ").await;
    assert!(begun.starts_with("HTTP/1.1 200") && begun.ends_with("1.0 \r\n"), "{begun:?}");
    server.site.may_go_on.add_permits(2);
    let rest = read(caller).await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    let replay = server.replay(&request).await;
    assert!(is_replay(&replay) && replay.ends_with("1.0 1.1 1.2 "), "{replay}");
    assert_eq!(server.site.runs(), 1);
}

#[actix_web::test]
async fn a_stream_left_half_way_replays_whole() {
    let server = Server::start();
    let request = keyed("/chunks", "");
    let mut caller = server.open(&request).await;
    server.site.may_go_on.add_permits(1);
    read_until(&mut caller, "1.0 ").await;
    caller.set_zero_linger().unwrap();
    drop(caller);
    server.site.may_go_on.add_permits(2);
    let replay = server.replay(&request).await;
    assert!(is_replay(&replay) && replay.ends_with("1.0 1.1 1.2 "), "{replay}");
    assert_eq!(server.site.runs(), 1);
}

#[actix_web::test]
async fn a_body_that_panics_half_way_breaks_off_and_frees_the_key() {
    let server = Server::start();
    let request = keyed("/panics", "");
    let broken = server.send(&request).await;
    assert!(broken.contains("half") && !broken.ends_with("0\r\n\r\n"), "{broken}");
    let second = server.replay(&request).await;
    assert!(!is_replay(&second) && second.ends_with("0\r\n\r\n"), "{second}");
    assert_eq!(server.site.runs(), 2);
}

#[actix_web::test]
async fn a_body_is_refused_by_its_real_length_and_when_it_is_cut() {
    let server = Server::start();
    let chunked = |chunks: &str| {
        format!(
            "POST /slow HTTP/1.1\r\nhost: here\r\nconnection: close\r\nidempotency-key: k\r\n\
             transfer-encoding: chunked\r\n\r\n{chunks}"
        )
    };
    let long = "x".repeat(1_001);
    let declared = server.send(&keyed("/slow", &long)).await;
    assert!(declared.starts_with("HTTP/1.1 413"), "{declared}");
    let real = server.send(&chunked(&format!("3e9\r\n{long}\r\n0\r\n\r\n"))).await;
    assert!(real.starts_with("HTTP/1.1 413"), "{real}");
    for cut in [chunked("5\r\nab"), keyed("/slow", "tea").replace("length: 3", "length: 4")] {
        let mut caller = server.open(&cut).await;
        caller.shutdown().await.unwrap();
        let refused = read(caller).await;
        assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 400"), "{refused}");
    }
    assert_eq!((server.site.runs(), server.idempotency.live_runs()), (0, 0));
}

#[actix_web::test]
async fn a_server_that_drains_before_it_stops_ends_every_run() {
    let store = MemoryStore::new();
    let server = Server::on(store.clone(), web::Data::new(Site::default()), 2);
    let request = keyed("/slow", "tea");
    let caller = server.open(&request).await;
    server.run_began().await;
    caller.set_zero_linger().unwrap();
    drop(caller);
    server.handle.pause().await;
    let draining = rt::spawn({
        let idempotency = server.idempotency.clone();
        async move { idempotency.drain(PATIENCE).await }
    });
    server.site.may_go_on.add_permits(1);
    assert_eq!(draining.await.unwrap().left, 0);
    server.handle.stop(true).await;
    timeout(PATIENCE, server.ended).await.unwrap().unwrap().unwrap();
    let next = Server::on(store, server.site.clone(), 1);
    let replay = next.send(&request).await;
    assert!(is_replay(&replay) && replay.ends_with("run 1 of tea"), "{replay}");
}

#[actix_web::test]
async fn a_worker_that_is_stopped_with_a_run_in_it_leaves_it_to_lapse() {
    let store = MemoryStore::new();
    let server = Server::on(store.clone(), web::Data::new(Site::default()), 1);
    let (stays, leaves) = (keyed("/slow", "tea"), keyed("/slow", "tea").replace("key: k", "key: l"));
    let staying = server.open(&stays).await;
    server.run_began().await;
    let leaving = server.open(&leaves).await;
    server.run_began().await;
    leaving.set_zero_linger().unwrap();
    drop(leaving);
    server.handle.stop(false).await;
    timeout(PATIENCE, server.ended).await.unwrap().unwrap().unwrap();
    assert!(!read(staying).await.contains("run"));
    let next = Server::on(store, server.site.clone(), 1);
    for request in [stays, leaves] {
        let refused = next.send(&request).await;
        assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("\"conflict\""), "{refused}");
    }
    assert_eq!(server.site.runs(), 2);
}

/// A body whose length is known and whose bytes come one by one.
struct Counted(u8);

impl MessageBody for Counted {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(3)
    }

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Bytes, Self::Error>>> {
        self.0 += 1;
        std::task::Poll::Ready((self.0 <= 3).then(|| Ok(Bytes::from_static(b"x"))))
    }
}

#[actix_web::test]
async fn a_body_of_known_length_is_stored_before_its_head_is_sent() {
    let idempotency = Idempotency::new(MemoryStore::new());
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let server = actix_web::test::init_service(App::new().wrap(idempotency).route(
        "/",
        web::post().to(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async { HttpResponse::Ok().body(BoxBody::new(Counted(0))) }
        }),
    ))
    .await;
    for replayed in [false, true] {
        let request = actix_web::test::TestRequest::post().insert_header(("idempotency-key", "k"));
        let response = actix_web::test::call_service(&server, request.to_request()).await;
        assert_eq!(response.headers().contains_key("idempotency-replayed"), replayed);
        assert_eq!(response.response().body().size(), BodySize::Sized(3));
        assert_eq!(actix_web::test::read_body(response).await, "xxx");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}
