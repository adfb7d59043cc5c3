//! How an operation ended: opaque bytes that answer a replay.

use std::{fmt, time::Duration};

use bytes::Bytes;

/// Which encoding an outcome's bytes have. Each profile owns its numbers; a store keeps them and reads nothing into
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Media(pub u16);

/// Whether an outcome can answer a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The whole answer.
    Whole,
    /// A tombstone: the operation is done, its answer was too large, streamed past the cap, or not to be kept. It
    /// is never a reason to run again.
    Tombstone,
}

/// Opaque bytes that answer a replay, or a tombstone that says "done, not replayable".
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the bytes are the whole answer.
    pub form: Form,
    /// How the bytes are encoded.
    pub media: Media,
    /// The bytes; a tombstone's describe what was done.
    pub bytes: Bytes,
}

impl Outcome {
    /// An outcome that answers replays in full.
    pub fn whole(media: Media, bytes: impl Into<Bytes>) -> Self {
        Self { form: Form::Whole, media, bytes: bytes.into() }
    }

    /// An outcome that says the operation is done but cannot be replayed.
    pub fn tombstone(media: Media, bytes: impl Into<Bytes>) -> Self {
        Self { form: Form::Tombstone, media, bytes: bytes.into() }
    }

    /// Whether this is a tombstone.
    pub const fn is_tombstone(&self) -> bool {
        matches!(self.form, Form::Tombstone)
    }
}

/// Shows how many bytes there are, and none of them.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, media, bytes } = self;
        write!(f, "Outcome({form:?}, {media:?}, {} bytes)", bytes.len())
    }
}

/// How long a completed record counts, from its completion on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How long its outcome answers replays.
    pub replay: Duration,
    /// How long after that its key is refused as expired; afterwards the key is new again.
    pub then_reject: Duration,
}
