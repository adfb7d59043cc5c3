//! What was asked, as digests: equal for a true copy, and able to say which part of another payload differs.

use std::fmt;

pub use secret::Secret;

mod secret;

/// A part of a payload that has a digest of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// The request method.
    Method,
    /// The full original path.
    Path,
    /// The raw query.
    Query,
    /// The media type, without its parameters.
    ContentType,
    /// The content coding.
    ContentEncoding,
    /// Headers a policy selects.
    Headers,
    /// The body.
    Body,
    /// The caller's credentials.
    Credentials,
    /// The [`Secret`] that keys all other digests. Its own is its id.
    Secret,
}

impl Part {
    const COUNT: usize = 9;
    const ALL: [Self; Self::COUNT] = [
        Self::Method,
        Self::Path,
        Self::Query,
        Self::ContentType,
        Self::ContentEncoding,
        Self::Headers,
        Self::Body,
        Self::Credentials,
        Self::Secret,
    ];

    /// The part's name in a refusal.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Path => "path",
            Self::Query => "query",
            Self::ContentType => "content-type",
            Self::ContentEncoding => "content-encoding",
            Self::Headers => "headers",
            Self::Body => "body",
            Self::Credentials => "credentials",
            Self::Secret => "secret",
        }
    }
}

/// A set of [`Part`]s: those in which two payloads differ.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts(u16);

impl Parts {
    /// Whether `part` is in the set.
    pub const fn contains(self, part: Part) -> bool {
        self.0 & (1 << part as u8) != 0
    }

    /// The parts of the set, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().filter(move |part| self.contains(*part))
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        Self(parts.into_iter().fold(0, |set, part| set | 1 << part as u8))
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A full BLAKE3 digest of what was asked, plus a 64-bit digest of each part; all of them keyed when a [`Secret`] is
/// configured, so that whoever reads a record cannot find out by trying what was asked.
///
/// The full digest alone decides whether two payloads are the same; the part digests only say where they differ.
#[derive(Clone, Copy)]
pub struct Fingerprint {
    digest: blake3::Hash,
    parts: [u64; Part::COUNT],
}

impl Fingerprint {
    /// The length of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 1 + blake3::OUT_LEN + 8 * Part::COUNT;
    const FORMAT: u8 = 2;

    /// Starts a fingerprint without any part, keyed by no secret.
    pub const fn builder() -> FingerprintBuilder<'static> {
        FingerprintBuilder { secret: None, digests: [None; Part::COUNT] }
    }

    /// Starts a fingerprint without any part, keyed by `secret`.
    pub const fn keyed(secret: &Secret) -> FingerprintBuilder<'_> {
        FingerprintBuilder { secret: Some(secret), digests: [None; Part::COUNT] }
    }

    /// The parts in which `other` differs.
    ///
    /// When the secrets differ nothing else can be compared. When credentials differ nothing else is named: a refusal
    /// must not tell one caller about another's payload.
    pub fn differing_parts(&self, other: &Self) -> Parts {
        let differs = |part: Part| self.parts[part as usize] != other.parts[part as usize];
        match [Part::Secret, Part::Credentials].into_iter().find(|part| differs(*part)) {
            Some(alone) => Parts::from_iter([alone]),
            None => Part::ALL.into_iter().filter(|part| differs(*part)).collect(),
        }
    }

    /// Whether both are keyed by one secret, or by none, and so can be compared part by part.
    pub(crate) const fn shares_secret(&self, other: &Self) -> bool {
        self.parts[Part::Secret as usize] == other.parts[Part::Secret as usize]
    }

    /// The bytes a store keeps: a format byte, the full digest, the part digests, the secret's last.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = Self::FORMAT;
        bytes[1..=blake3::OUT_LEN].copy_from_slice(self.digest.as_bytes());
        for (room, part) in bytes[1 + blake3::OUT_LEN..].chunks_exact_mut(8).zip(self.parts) {
            room.copy_from_slice(&part.to_le_bytes());
        }
        bytes
    }

    /// Reads [`to_bytes`](Self::to_bytes) back.
    ///
    /// # Errors
    /// [`FingerprintError`] when the length or the format byte is another one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FingerprintError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| FingerprintError)?;
        let (format, rest) = bytes.split_first().ok_or(FingerprintError)?;
        if *format != Self::FORMAT {
            return Err(FingerprintError);
        }
        let (digest, tail) = rest.split_at(blake3::OUT_LEN);
        let mut parts = [0; Part::COUNT];
        for (part, room) in parts.iter_mut().zip(tail.chunks_exact(8)) {
            *part = u64::from_le_bytes(room.try_into().map_err(|_| FingerprintError)?);
        }
        let digest = blake3::Hash::from_slice(digest).map_err(|_| FingerprintError)?;
        Ok(Self { digest, parts })
    }
}

/// Compares the full digests, in constant time.
impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Fingerprint {}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", &self.digest.to_hex()[..16])
    }
}

/// Stored bytes that are no [`Fingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored fingerprint has another length or format")]
pub struct FingerprintError;

/// Collects the parts of a payload; the order in which they are given does not matter.
#[derive(Debug, Clone)]
pub struct FingerprintBuilder<'s> {
    secret: Option<&'s Secret>,
    digests: [Option<blake3::Hash>; Part::COUNT],
}

impl FingerprintBuilder<'_> {
    /// Sets `part` to the digest of `bytes`. A part never set differs from one set to no bytes. [`Part::Secret`] is what
    /// the fingerprint was started with, whatever is set here.
    #[must_use]
    pub fn part(self, part: Part, bytes: &[u8]) -> Self {
        let digest = self.secret.map_or_else(|| blake3::hash(bytes), |secret| secret.hash(bytes));
        self.digest(part, digest)
    }

    /// Sets `part` to the digest of fields, each framed by its length.
    #[must_use]
    pub fn fields<'a>(self, part: Part, fields: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = self.hasher();
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
        }
        self.digest(part, hasher.finalize())
    }

    /// The fingerprint of the parts set so far.
    pub fn build(mut self) -> Fingerprint {
        let mut hasher = self.hasher();
        hasher.update(b"idempotency fingerprint 1");
        self.digests[Part::Secret as usize] = None;
        let mut parts = [0; Part::COUNT];
        for ((tag, digest), short) in (0u8..).zip(self.digests).zip(&mut parts) {
            let Some(digest) = digest else { continue };
            hasher.update(&[tag]).update(digest.as_bytes());
            let (head, _) = digest.as_bytes().split_first_chunk().expect("a digest is longer than 8 bytes");
            *short = u64::from_le_bytes(*head);
        }
        parts[Part::Secret as usize] = self.secret.map_or(0, Secret::tag);
        Fingerprint { digest: hasher.finalize(), parts }
    }

    fn hasher(&self) -> blake3::Hasher {
        self.secret.map_or_else(blake3::Hasher::new, Secret::hasher)
    }

    fn digest(mut self, part: Part, digest: blake3::Hash) -> Self {
        self.digests[part as usize] = Some(digest);
        self
    }
}

#[cfg(test)]
mod tests;
