//! The caller's name for an operation.

use std::fmt;

/// The caller's name for one operation: 1 to 255 bytes of visible ASCII, spaces allowed inside.
///
/// Two keys are the same when their bytes are the same, on every store: no case folding, no collation. A key is
/// never printed: [`Debug`](fmt::Debug) shows its length only, logs show [`Address`](crate::Address) digests.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<str>);

impl Key {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks `text` and makes it a key.
    ///
    /// # Errors
    /// [`KeyError`] names the rule that `text` breaks.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(KeyError::TooLong);
        }
        // Without an early end, so that many bytes are compared at once.
        if !text.bytes().fold(true, |visible, byte| visible & matches!(byte, b' '..=b'~')) {
            return Err(KeyError::NotVisibleAscii);
        }
        Ok(Self(text))
    }

    /// The key's text. Do not log it: it names somebody's operation.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

/// The rule a key breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key has at least one byte.
    #[error("the key is empty")]
    Empty,
    /// A key has at most [`Key::MAX_BYTES`] bytes.
    #[error("the key is longer than 255 bytes")]
    TooLong,
    /// A key holds the bytes 0x20 to 0x7E only.
    #[error("the key holds a byte outside visible ASCII")]
    NotVisibleAscii,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_and_alphabet_are_bounded() {
        assert!(Key::new("k").is_ok());
        assert!(Key::new("a b~").is_ok());
        assert!(Key::new("a".repeat(255)).is_ok());
        assert_eq!(Key::new("a".repeat(256)), Err(KeyError::TooLong));
        assert_eq!(Key::new(""), Err(KeyError::Empty));
        for text in ["tab\t", "é", "\u{7f}", "line\n"] {
            assert_eq!(Key::new(text), Err(KeyError::NotVisibleAscii), "{text:?}");
        }
    }

    #[test]
    fn debug_shows_no_character_of_the_key() {
        let key = Key::new("order-4711").unwrap();
        assert_eq!(format!("{key:?}"), "Key(10 bytes)");
    }
}
