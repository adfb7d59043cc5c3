//! A client that opens a connection for each request and closes it when it is dropped.

use std::{error::Error, net::SocketAddr};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A keyed POST without a body.
pub(crate) fn post(path: &str, key: &str) -> Request<Full<Bytes>> {
    Request::post(path).header("idempotency-key", key).body(Full::default()).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(path).body(Full::default()).unwrap()
}

/// A whole response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    async fn read<B>(response: http::Response<B>) -> Result<Self, BoxError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(Into::into)?;
        let trailers = body.trailers().cloned();
        Ok(Self { status: head.status, headers: head.headers, body: body.to_bytes(), trailers })
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of a problem; empty for any other answer.
    pub(crate) fn code(&self) -> String {
        if self.headers.get(header::CONTENT_TYPE).is_none_or(|value| value != "application/problem+json") {
            return String::new();
        }
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    address: SocketAddr,
}

impl Client {
    pub(crate) const fn to(address: SocketAddr) -> Self {
        Self { address }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request over HTTP/1.1. Dropped before it is done, the connection closes.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, BoxError> {
        let host = self.address.to_string().parse().unwrap();
        request.headers_mut().insert(header::HOST, host);
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        Answer::read(sender.send_request(request).await?).await
    }

    /// Sends bytes and returns all that comes back until the server closes.
    pub(crate) async fn send_bytes(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        all_of(stream).await
    }

    /// The same, saying after the bytes that no more will come.
    pub(crate) async fn send_last_bytes(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        all_of(stream).await
    }

    /// Opens an HTTP/2 connection without TLS.
    pub(crate) async fn http2(&self) -> Http2 {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        Http2 { sender, authority: self.address.to_string(), _tasks: tasks }
    }
}

async fn all_of(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A reset after the answer loses nothing of it.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// One HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Http2 {
    sender: http2::SendRequest<Full<Bytes>>,
    authority: String,
    _tasks: JoinSet<hyper::Result<()>>,
}

impl Http2 {
    /// Sends a request on a stream of its own. Dropped before it is done, the stream is reset.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Answer, BoxError> {
        *request.uri_mut() = format!("http://{}{}", self.authority, request.uri()).parse()?;
        let mut sender = self.sender.clone();
        Answer::read(sender.send_request(request).await?).await
    }
}
