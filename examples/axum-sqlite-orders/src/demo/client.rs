//! A customer with an HTTP client, who does as the answers say.

use std::{error::Error, fmt, time::Duration};

use axum::http::{
    Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

use crate::Failure;

type Body = Full<axum::body::Bytes>;

#[derive(Clone)]
pub(super) struct Customer {
    name: &'static str,
    port: u16,
    http: legacy::Client<HttpConnector, Body>,
}

impl Customer {
    /// A customer of the server on `port`, with connections of her own.
    pub(super) fn new(name: &'static str, port: u16) -> Self {
        Self { name, port, http: legacy::Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Orders `quantity` packets of tea, once. Dropping the future hangs up.
    pub(super) async fn order(&self, key: &str, quantity: u32) -> Result<Answer, Failure> {
        let request = Request::post(format!("http://127.0.0.1:{}/orders", self.port))
            .header(AUTHORIZATION, format!("Bearer {}", self.name))
            .header("Idempotency-Key", key)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(format!(r#"{{"item":"tea","quantity":{quantity}}}"#)))?;
        Answer::read(self.http.request(request).await?).await
    }

    /// Orders, and tries again after the time given for as long as the first try is said to run.
    pub(super) async fn order_until_answered(&self, key: &str, quantity: u32) -> Result<Answer, Failure> {
        loop {
            let answer = self.order(key, quantity).await?;
            match answer.retry_after {
                Some(pause) if answer.is_conflict() => tokio::time::sleep(pause).await,
                _ => return Ok(answer),
            }
        }
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Value,
}

impl Answer {
    async fn read<B>(response: Response<B>) -> Result<Self, Failure>
    where
        B: axum::body::HttpBody<Error: Error + Send + Sync + 'static>,
    {
        let (head, body) = response.into_parts();
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(Self {
            status: head.status,
            replayed: header("idempotency-replayed") == Some("true"),
            retry_after: header(RETRY_AFTER.as_str()).and_then(|s| s.parse().ok()).map(Duration::from_secs),
            body: serde_json::from_slice(&body.collect().await?.to_bytes())?,
        })
    }

    /// Whether the layer, not the application, says that the first request still runs.
    pub(super) fn is_conflict(&self) -> bool {
        self.body["code"] == "conflict"
    }
}

/// `201 order 1`, `201 order 1, a replay`, `422 fingerprint-mismatch in body`.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status.as_u16())?;
        if let Some(order) = self.body["id"].as_i64() {
            write!(f, " order {order}")?;
        }
        if let Some(code) = self.body["code"].as_str() {
            write!(f, " {code}")?;
        }
        if let Some(parts) = self.body["mismatch"].as_array() {
            let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
            write!(f, " in {}", parts.join(", "))?;
        }
        if self.replayed { f.write_str(", a replay") } else { Ok(()) }
    }
}
