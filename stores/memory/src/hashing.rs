//! A hash for addresses, which are uniform already.
//!
//! An address is an unkeyed digest of a key that the caller chose, so a caller can search for keys whose digests share
//! some bits. Mixing in a secret of this process keeps it from aiming at one bucket.

use std::hash::{BuildHasher, Hasher, RandomState};

#[derive(Debug, Clone, Copy)]
pub(crate) struct AddressHashing {
    secret: u64,
}

impl AddressHashing {
    pub(crate) fn draw() -> Self {
        Self { secret: RandomState::new().hash_one(()) }
    }
}

impl BuildHasher for AddressHashing {
    type Hasher = AddressHasher;

    fn build_hasher(&self) -> AddressHasher {
        AddressHasher { secret: self.secret, head: 0 }
    }
}

pub(crate) struct AddressHasher {
    secret: u64,
    head: u64,
}

impl Hasher for AddressHasher {
    /// Keeps the first 8 bytes. The length that is hashed before them is overwritten.
    fn write(&mut self, bytes: &[u8]) {
        if let Some(head) = bytes.first_chunk() {
            self.head = u64::from_le_bytes(*head);
        }
    }

    /// Folds a full product, so that every bit of the secret reaches every bit of the hash.
    fn finish(&self) -> u64 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = u128::from(self.head ^ self.secret) * u128::from(self.secret.rotate_left(32) | ODD);
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use idempotency_core::Address;

    use super::*;

    fn address(number: u64) -> Address {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Address::from_bytes(bytes)
    }

    #[test]
    fn addresses_that_share_low_bits_do_not_share_a_bucket() {
        let hashing = AddressHashing::draw();
        let buckets: HashSet<u64> = (0..1_000).map(|n| hashing.hash_one(address(n << 32)) & 0xffff).collect();
        assert!(buckets.len() > 900, "{} buckets", buckets.len());
    }

    #[test]
    fn the_secret_counts() {
        let hash = |secret| AddressHashing { secret }.hash_one(address(7));
        assert_ne!(hash(1), hash(2));
        assert_eq!(hash(1), hash(1));
    }
}
