//! Connections that stop speaking HTTP: a WebSocket handshake passes, and what no replay could give back frees its key.

use bytes::Bytes;
use h2::ext::Protocol;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    client::{Client, post},
    h2_cases::Connection,
    server::{Setting, until},
};

pub(crate) async fn a_keyed_handshake_passes(setting: Setting) {
    let server = setting.start().await;
    let client = server.client;
    // A run that holds the key: whatever is guarded under it is refused meanwhile.
    let running = tokio::spawn(async move { client.send(post("/counter?ms=1000", "handshake")).await });
    until("the run began", async || (server.runs().await == 1).then_some(())).await;
    for _ in 0..2 {
        shake_hands(client, Method::GET).await;
    }
    assert!(!running.is_finished(), "the hands were shaken during the run");
    let ran = running.await.unwrap().unwrap();
    assert_eq!((ran.status, ran.is_replay()), (StatusCode::OK, false));
    assert_eq!(server.runs().await, 1);
}

pub(crate) async fn a_keyed_post_that_switches_protocols_frees_its_key(setting: Setting) {
    let server = setting.start().await;
    for runs in 1..=2 {
        shake_hands(server.client, Method::POST).await;
        assert_eq!(server.runs().await, runs);
    }
    let ran = server.client.send(post("/counter", "handshake")).await.unwrap();
    assert_eq!((ran.status, ran.is_replay()), (StatusCode::OK, false));
    assert_eq!(server.runs().await, 3);
}

/// Upgrades a connection, and hears its own bytes on it.
async fn shake_hands(client: Client, method: Method) {
    let stream = TcpStream::connect(client.address()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection.with_upgrades());
    let request = Request::builder()
        .method(method)
        .uri("/upgrade")
        .header(header::HOST, client.address().to_string())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header("idempotency-key", "handshake");
    let response = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(response.headers().get(header::UPGRADE), Some(&HeaderValue::from_static("websocket")));
    let ours = response.headers().keys().find(|name| name.as_str().starts_with("idempotency"));
    assert_eq!(ours, None, "the answer passes untouched");
    let mut echo = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    for said in [b"one", b"two"] {
        echo.write_all(said).await.unwrap();
        let mut heard = [0; 3];
        echo.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, said);
    }
}

pub(crate) async fn a_keyed_extended_connect_passes(setting: Setting) {
    let server = setting.start().await;
    let authority = server.client.address().to_string();
    let connection = Connection::open(&authority).await;
    for _ in 0..2 {
        let mut sender = until("the server says that it knows the extended CONNECT", async || {
            let sender = connection.sender().await.unwrap();
            sender.is_extended_connect_protocol_enabled().then_some(sender)
        })
        .await;
        let request = Request::connect(format!("http://{authority}/upgrade"))
            .extension(Protocol::from_static("websocket"))
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header("idempotency-key", "handshake");
        let (response, mut said) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers().keys().all(|name| !name.as_str().starts_with("idempotency")));
        let mut heard = response.into_body();
        for word in ["one", "two"] {
            said.send_data(word.into(), false).unwrap();
            let echo = heard.data().await.unwrap().unwrap();
            heard.flow_control().release_capacity(echo.len()).unwrap();
            assert_eq!(echo, word);
        }
        said.send_data(Bytes::new(), true).unwrap();
        while let Some(rest) = heard.data().await {
            assert_eq!(rest.unwrap(), "", "nothing was said since");
        }
    }
    let ran = server.client.send(post("/counter", "handshake")).await.unwrap();
    assert_eq!((ran.status, ran.is_replay()), (StatusCode::OK, false));
}
