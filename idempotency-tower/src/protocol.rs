//! What a protocol that is spoken over HTTP changes of the door: gRPC, whose status is in fields of its own and whose
//! bodies are framed.

use bytes::Bytes;
use http::{HeaderMap, Response, request::Parts};
use idempotency_core::profile::http::{Ending, OnServerError, Refusal};

/// How a protocol over HTTP says what HTTP says otherwise: for doors that translate for one, by
/// [`Policy::speaking`](crate::Policy::speaking).
#[derive(Debug, Clone, Copy)]
pub struct Protocol {
    /// A refusal in its words.
    pub refusal: fn(&Refusal) -> Response<Bytes>,
    /// What of a request's body is compared, where the policy neither leaves it out nor has a function of its own.
    pub meaning: fn(&Parts, &Bytes) -> Bytes,
    /// The ending that the fields of an answer of status 200 say: of its head, or, where that says none, of its trailers.
    /// An answer where neither says one is a server error.
    pub ending: fn(&HeaderMap, OnServerError) -> Option<Ending>,
}

/// In a request's extensions: it passes as one without a key does, and is not refused where a key is required. For layers
/// outside this one, since no caller can set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pass;
