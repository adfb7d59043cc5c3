//! A request, down to how its bytes are framed and where its client leaves.

use serde::Deserialize;

use super::{Bytes, Number};

/// One request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The method. POST.
    pub method: Option<String>,
    /// Path and query. Templates are allowed.
    pub path: String,
    /// The key as a caller means it: the runner spells it as a quoted string, or bare when it is told to.
    pub key: Option<Bytes>,
    /// Lines of the key's header, each exactly as it stands. Instead of `key`.
    pub key_lines: Vec<Bytes>,
    /// The content type. `text/plain` where there is a body.
    pub content_type: Option<String>,
    /// Further header lines, in order, names as they are spelled.
    pub headers: Vec<(String, Bytes)>,
    /// Whether the key's header is spelled in small letters.
    pub small_letters: bool,
    /// Who asks, where that matters: another name is another caller.
    pub caller: Option<String>,
    /// The body.
    pub body: Option<Bytes>,
    /// How the body is delimited. By its length.
    pub framing: Framing,
    /// The chunks of a chunked body, instead of the body as one.
    pub chunks: Vec<Bytes>,
    /// What Content-Length claims, where that is not the body's length.
    pub declared_length: Option<u64>,
    /// Whether the body waits for the server's `100 (Continue)`.
    pub awaits_continue: bool,
    /// The whole request, byte for byte, instead of everything above.
    pub raw: Option<Bytes>,
    /// The name of a connection that further requests use too. A connection of its own.
    pub connection: Option<String>,
    /// Whether the server may have closed that connection before.
    pub reconnects: bool,
    /// Where its client leaves without having read an answer.
    pub abort: Option<Abort>,
    /// Whether its key stands among the headers and its texts mean what they say.
    #[serde(skip)]
    pub is_foreign: bool,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// Content-Length.
    #[default]
    Length,
    /// Transfer-Encoding: chunked.
    Chunked,
}

/// Where a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abort {
    /// After the head and so many bytes of the framed body.
    AfterBytes(usize),
    /// After everything was sent and so many milliseconds passed; the connection is closed.
    AfterMs(Number),
    /// The same, and the connection is reset.
    ResetAfterMs(Number),
}
