//! What was asked, as digests: equal for a true copy, and able to say which part of another payload differs.

use std::fmt;

use siphasher::sip::SipHasher13;

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

/// A full BLAKE3 digest of what was asked, plus a 64-bit digest of each part (SipHash of a short one, the head of a long
/// one's BLAKE3); all of them keyed when a [`Secret`] is configured, so that whoever reads a record cannot find out by
/// trying what was asked.
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
    pub fn builder() -> FingerprintBuilder<'static> {
        FingerprintBuilder::new(None)
    }

    /// Starts a fingerprint without any part, keyed by `secret`.
    pub fn keyed(secret: &Secret) -> FingerprintBuilder<'_> {
        FingerprintBuilder::new(Some(secret))
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

/// Collects the parts of a payload.
///
/// Give them in one fixed order, each once: the full digest is taken of them as they come.
#[derive(Debug)]
pub struct FingerprintBuilder<'s> {
    secret: Option<&'s Secret>,
    short: SipHasher13,
    parts: [u64; Part::COUNT],
    /// What the full digest is taken of: each part behind its number, its form and its length.
    framed: Vec<u8>,
}

/// How a part stands in the frame.
#[derive(Clone, Copy)]
enum Framed {
    Bytes = 0,
    Digest = 1,
    FieldsDigest = 2,
}

impl<'s> FingerprintBuilder<'s> {
    /// The longest part that stands in the frame itself; a longer one is framed as its digest.
    const INLINE: usize = 64;
    /// Room for the short parts of most requests.
    const USUAL: usize = 192;

    fn new(secret: Option<&'s Secret>) -> Self {
        let mut framed = Vec::with_capacity(Self::USUAL);
        framed.extend_from_slice(b"idempotency fingerprint 2");
        let short =
            secret.map_or_else(SipHasher13::new, |secret| SipHasher13::new_with_key(&secret.short_key()));
        Self { secret, short, parts: [0; Part::COUNT], framed }
    }

    /// Gives `part` as bytes. A part never given differs from one of no bytes. [`Part::Secret`] is what the fingerprint
    /// was started with, whatever is given here.
    #[must_use]
    pub fn part(mut self, part: Part, bytes: &[u8]) -> Self {
        self.add(part, bytes);
        self
    }

    /// Gives `part` as fields, each framed by its length.
    #[must_use]
    pub fn fields<'a>(mut self, part: Part, fields: impl IntoIterator<Item = &'a [u8]>) -> Self {
        self.add_fields(part, fields);
        self
    }

    /// The fingerprint of the parts given so far.
    pub fn build(self) -> Fingerprint {
        self.finish()
    }

    // Every request makes a fingerprint, and a builder that is handed on by value is copied with each part.

    pub(crate) fn add(&mut self, part: Part, bytes: &[u8]) {
        if bytes.len() > Self::INLINE {
            self.frame_digest(part, Framed::Digest, &self.hash(bytes));
        } else {
            let short = self.short.hash(bytes);
            self.frame(part, Framed::Bytes, bytes, short);
        }
    }

    pub(crate) fn add_fields<'a>(&mut self, part: Part, fields: impl IntoIterator<Item = &'a [u8]>) {
        let mut hasher = self.secret.map_or_else(blake3::Hasher::new, Secret::hasher);
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
        }
        self.frame_digest(part, Framed::FieldsDigest, &hasher.finalize());
    }

    pub(crate) fn finish(&self) -> Fingerprint {
        let digest = self.hash(&self.framed);
        let mut parts = self.parts;
        parts[Part::Secret as usize] = self.secret.map_or(0, Secret::tag);
        Fingerprint { digest, parts }
    }

    fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        self.secret.map_or_else(|| blake3::hash(bytes), |secret| secret.hash(bytes))
    }

    fn frame_digest(&mut self, part: Part, form: Framed, digest: &blake3::Hash) {
        let (head, _) = digest.as_bytes().split_first_chunk().expect("a digest is longer than 8 bytes");
        self.frame(part, form, digest.as_bytes(), u64::from_le_bytes(*head));
    }

    fn frame(&mut self, part: Part, form: Framed, bytes: &[u8], short: u64) {
        if part != Part::Secret {
            let length = u8::try_from(bytes.len()).expect("what is framed is short");
            self.framed.extend_from_slice(&[part as u8, form as u8, length]);
            self.framed.extend_from_slice(bytes);
            self.parts[part as usize] = short;
        }
    }
}

#[cfg(test)]
mod tests;
