//! A request as it goes out on a stream.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri, header};

use super::{
    case::{Framing, Request},
    words::Words,
};

/// As long as a caller waits for its answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// One stream's worth of a request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) head: http::Request<()>,
    pub(crate) data: Vec<Bytes>,
    pub(crate) end: End,
    pub(crate) leave: Leave,
    pub(crate) patience: Duration,
}

/// How the request's side of the stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With `END_STREAM`.
    Whole,
    /// With `RST_STREAM(CANCEL)`, once its data is out.
    Reset,
    /// Not at all.
    Open,
}

/// When the caller resets the stream without waiting for the end of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Never,
    After(Duration),
    /// Once so many bytes of the answer's body are there.
    AfterBytes(usize),
}

impl Call {
    /// A keyed POST without a body.
    pub(crate) fn post(authority: &str, target: &str, key: &str) -> Self {
        let head = http::Request::post(format!("http://{authority}{target}")).header("idempotency-key", key);
        Self {
            head: head.body(()).unwrap(),
            data: Vec::new(),
            end: End::Whole,
            leave: Leave::Never,
            patience: PATIENCE,
        }
    }

    /// The request of a case, with its templates filled in.
    pub(crate) fn of(request: &Request, authority: &str, words: &mut Words) -> Self {
        let data = data(request, words);
        let length = data.iter().map(Bytes::len).sum();
        let declared = match request.framing {
            Framing::Length => Some(request.declared_length.unwrap_or(length)),
            Framing::Chunked | Framing::None => None,
        };
        let end = match declared {
            _ if request.no_terminator => End::Reset,
            Some(declared) if declared > length => End::Open,
            _ => End::Whole,
        };
        let leave = match (request.close_after_ms, request.close_after_bytes) {
            (Some(ms), _) => Leave::After(Duration::from_millis(ms)),
            (None, Some(bytes)) => Leave::AfterBytes(bytes),
            (None, None) => Leave::Never,
        };
        let patience = request.timeout_ms.map_or(PATIENCE, Duration::from_millis);
        Self { head: head(request, declared, authority, words), data, end, leave, patience }
    }
}

fn head(request: &Request, declared: Option<usize>, authority: &str, words: &mut Words) -> http::Request<()> {
    let uri: Uri = format!("http://{authority}{}", words.fill(&request.target)).parse().unwrap();
    let method = words.fill(&request.method);
    let mut head = http::Request::builder().method(&*method).uri(uri).body(()).unwrap();
    let key = request.key.iter().map(|key| ("idempotency-key", key));
    let fields = request.headers.iter().map(|(name, value)| (&**name, value));
    for (name, value) in key.chain(fields) {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        head.headers_mut().append(name, field_value(&words.fill(value)));
    }
    if let Some(length) = declared {
        head.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    if request.expect_continue {
        head.headers_mut().insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    }
    head
}

/// A case writes the bytes of a field as the characters of the same numbers.
fn field_value(text: &str) -> HeaderValue {
    let bytes: Vec<u8> = text.chars().map(|char| u8::try_from(char).unwrap()).collect();
    HeaderValue::from_bytes(&bytes).unwrap()
}

fn data(request: &Request, words: &mut Words) -> Vec<Bytes> {
    let mut data: Vec<_> = match &request.chunks {
        Some(chunks) => chunks.iter().map(|chunk| chunk.bytes(words)).collect(),
        None => vec![request.body.bytes(words)],
    };
    let mut left = request.send_bytes.unwrap_or(usize::MAX);
    for bytes in &mut data {
        bytes.truncate(left);
        left -= bytes.len();
    }
    data.retain(|bytes| !bytes.is_empty());
    data
}
