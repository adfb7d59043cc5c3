//! Raw HTTP/1.1 over TCP: requests byte for byte as a vector says, and answers with everything that a client library
//! would have tidied away.

mod answer;
mod body;
mod connection;
mod target;

use std::{io, time::Duration};

pub(crate) use answer::Answer;
pub(crate) use connection::{Connection, Message};
pub use target::{Target, TargetError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    /// There is no connection.
    #[error("it cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The connection ended before the head of an answer did.
    #[error("it closed the connection before it had answered ({received} bytes of an answer came)")]
    Closed {
        /// How many bytes had come.
        received: usize,
    },
    /// The time is over.
    #[error("it had not answered after {} ms", limit.as_millis())]
    Silent {
        /// How long the client waited.
        limit: Duration,
    },
    /// What came is not HTTP/1.1.
    #[error("its answer is not HTTP/1.1")]
    Garbage(#[source] Garbage),
}

/// What is wrong with bytes that should have been an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Garbage {
    /// The head cannot be read.
    #[error("its head cannot be read")]
    Head(#[source] httparse::Error),
    /// The head has no end.
    #[error("its head is longer than {0} bytes")]
    LongHead(usize),
    /// It announces and never answers.
    #[error("it sent {0} interim answers, and no other one")]
    Interim(usize),
    /// The body is longer than a client takes.
    #[error("its body is longer than {0} bytes")]
    LongBody(usize),
    /// Content-Length is no number, or several.
    #[error("its Content-Length is no length")]
    Length,
    /// A chunk does not begin with its size, or does not end where that says.
    #[error("a chunk of its body is malformed")]
    Chunk,
    /// The trailer cannot be read.
    #[error("its trailer cannot be read")]
    Trailer,
}
