//! Where records stand: a prefix, and the address in hexadecimal digits.
//!
//! Digits, because an address has any bytes: a brace among them would change which node of a cluster a key belongs to.

use idempotency_core::Address;

use crate::OpenError;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// How many digits an address has.
const ADDRESS: usize = 64;

/// The names of a store's keys and of its channel.
#[derive(Debug)]
pub(crate) struct Keys {
    prefix: Box<str>,
}

impl Keys {
    pub(crate) const DEFAULT: &str = "idempotency:";
    const LONGEST: usize = 256;

    pub(crate) fn begin_with(prefix: &str) -> Result<Self, OpenError> {
        match prefix.len() {
            1..=Self::LONGEST => Ok(Self { prefix: prefix.into() }),
            _ => Err(OpenError::Prefix),
        }
    }

    /// The key of the record at `address`.
    pub(crate) fn of(&self, address: &Address) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + ADDRESS);
        key.extend_from_slice(self.prefix.as_bytes());
        let digit = |value: u8| DIGITS[usize::from(value)];
        key.extend(address.as_bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        key
    }

    /// The address of the record at a key, if it is one of ours.
    pub(crate) fn address(&self, key: &[u8]) -> Option<Address> {
        address(key.strip_prefix(self.prefix.as_bytes())?)
    }

    /// What matches the keys, and maybe others.
    pub(crate) fn pattern(&self) -> String {
        let mut pattern = String::with_capacity(self.prefix.len() + 1);
        for letter in self.prefix.chars() {
            if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern + "*"
    }

    /// Where scripts tell that a record ended which is waited for, in the digits of its address.
    pub(crate) fn channel(&self) -> String {
        format!("{}ended", self.prefix)
    }
}

/// The address that these digits are.
pub(crate) fn address(digits: &[u8]) -> Option<Address> {
    let digits: &[u8; ADDRESS] = digits.try_into().ok()?;
    let value = |digit: u8| DIGITS.iter().position(|known| *known == digit);
    let mut bytes = [0; ADDRESS / 2];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_chunks().0) {
        *byte = u8::try_from(value(*high)? << 4 | value(*low)?).ok()?;
    }
    Some(Address::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_as_the_address_it_was_made_of() {
        let keys = Keys::begin_with("shop{1}:").unwrap();
        let bytes = std::array::from_fn(|i| u8::try_from(i * 37 % 256).unwrap());
        let address = Address::from_bytes(bytes);
        let key = keys.of(&address);
        assert_eq!(keys.address(&key), Some(address));
        assert!(!key["shop{1}:".len()..].iter().any(|byte| b"{}".contains(byte)));
        for other in [&key[1..], &key[..key.len() - 1], &[&key[..], b"0"].concat(), &key.to_ascii_uppercase()]
        {
            assert_eq!(keys.address(other), None);
        }
    }

    #[test]
    fn a_prefix_matches_itself_whatever_it_says() {
        let keys = Keys::begin_with(r"a*b?[c]\d").unwrap();
        assert_eq!(keys.pattern(), r"a\*b\?\[c\]\\d*");
    }

    #[test]
    fn a_prefix_is_neither_empty_nor_endless() {
        assert!(matches!(Keys::begin_with(""), Err(OpenError::Prefix)));
        assert!(matches!(Keys::begin_with(&"x".repeat(257)), Err(OpenError::Prefix)));
        assert!(Keys::begin_with(&"x".repeat(256)).is_ok());
    }
}
