//! Calls as HTTP: what is on the wire, byte for byte.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use prost::Message;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A client that knows nothing of gRPC.
#[derive(Clone)]
pub(crate) struct Raw {
    http: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    method: Method,
    content_type: &'static str,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Answer {
    pub(crate) fn is_replay(&self) -> bool {
        self.headers.get("idempotency-replayed").is_some_and(|marker| marker == "true")
    }
}

impl Raw {
    /// Over HTTP/2, as gRPC is.
    pub(crate) fn to(address: SocketAddr) -> Self {
        let http = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        Self { http, address, method: Method::POST, content_type: "application/grpc" }
    }

    /// Over HTTP/1.1, as browsers send gRPC-Web.
    pub(crate) fn web(address: SocketAddr) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { http, address, method: Method::POST, content_type: "application/grpc-web+proto" }
    }

    /// The same, in a disguise.
    pub(crate) fn disguised(self, method: Method, content_type: &'static str) -> Self {
        Self { method, content_type, ..self }
    }

    pub(crate) async fn send(self, path: &'static str, key: &'static str, body: Bytes) -> Answer {
        self.ask(path, Some(key), body).await
    }

    pub(crate) async fn send_unkeyed(self, path: &'static str, body: Bytes) -> Answer {
        self.ask(path, None, body).await
    }

    async fn ask(self, path: &'static str, key: Option<&'static str>, body: Bytes) -> Answer {
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!("http://{}{path}", self.address))
            .header("content-type", self.content_type)
            .header("te", "trailers")
            .body(Full::new(body))
            .unwrap();
        request.headers_mut().extend(key.map(|key| (KEY, HeaderValue::from_static(key))));
        let (head, body) = self.http.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        Answer { status: head.status, headers: head.headers, body: body.to_bytes(), trailers }
    }
}

/// One message, uncompressed, with its prefix.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, &message].concat().into()
}
