//! The secret of a service, which keys its fingerprints.

use std::fmt;

/// A key for fingerprints, and the public number by which records name it.
///
/// Without one, who can read a record of the store can try payloads until one fits. With one, they need the key too.
/// Every host of a service needs the same secrets. The id is kept in every record and is no secret: count it up, and
/// never give it to another key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    id: u32,
    key: [u8; 32],
}

impl Secret {
    /// The secret `key`, 32 random bytes, called `id`.
    pub const fn new(id: u32, key: [u8; 32]) -> Self {
        Self { id, key }
    }

    /// The public number.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The id, and that there is one: zero stands for no secret.
    pub(super) fn tag(&self) -> u64 {
        1 << 32 | u64::from(self.id)
    }

    /// What keys the digests of short parts.
    pub(super) fn short_key(&self) -> [u8; 16] {
        let derived = self.hash(b"idempotency: the key of short parts");
        let (key, _) = derived.as_bytes().split_first_chunk().expect("a digest is longer than 16 bytes");
        *key
    }

    pub(super) fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.key, bytes)
    }

    pub(super) fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.key)
    }
}

/// Shows the id only.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_byte_of_the_key() {
        assert_eq!(format!("{:?}", Secret::new(7, [0xab; 32])), "Secret(7)");
    }
}
