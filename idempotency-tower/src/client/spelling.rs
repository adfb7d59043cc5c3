//! How a key is written into its header.

use http::HeaderValue;
use idempotency_core::Key;

use super::Misuse;

/// How a key is written into its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Spelling {
    /// As a quoted string (RFC 9651), which is what draft-ietf-httpapi-idempotency-key-header asks for. The default.
    #[default]
    Quoted,
    /// As it is, for services that take the quotes for a part of the key.
    Bare,
}

impl Spelling {
    /// The header's value, marked sensitive.
    pub(super) fn write(self, key: &Key) -> Result<HeaderValue, Misuse> {
        let text = match self {
            Self::Quoted => quoted(key.as_str()),
            Self::Bare if key.as_str().contains([' ', ',', '"']) => return Err(Misuse::NeedsQuotes),
            Self::Bare => key.as_str().to_owned(),
        };
        let mut value = HeaderValue::try_from(text).expect("a key is visible ASCII");
        value.set_sensitive(true);
        Ok(value)
    }
}

fn quoted(key: &str) -> String {
    let mut text = String::with_capacity(key.len() + 2);
    text.push('"');
    for character in key.chars() {
        if matches!(character, '"' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use idempotency_core::profile::http::KeySyntax;

    use super::*;

    #[test]
    fn every_spelling_is_read_back_as_the_same_key() {
        for text in ["k", "a b, c", r#"say "tea""#, r"back\slash"] {
            let key = Key::new(text).unwrap();
            let value = Spelling::Quoted.write(&key).unwrap();
            assert_eq!(KeySyntax::Strict.read([value.as_bytes()]), Ok(Some(key.clone())), "{text}");
            if let Ok(value) = Spelling::Bare.write(&key) {
                assert_eq!(KeySyntax::Lenient.read([value.as_bytes()]), Ok(Some(key)), "{text}");
            }
        }
    }

    #[test]
    fn a_key_with_a_separator_is_never_bare() {
        for text in ["a b", "a,b", r#""a""#] {
            assert_eq!(Spelling::Bare.write(&Key::new(text).unwrap()), Err(Misuse::NeedsQuotes), "{text}");
        }
        assert_eq!(Spelling::Bare.write(&Key::new("a-b").unwrap()).unwrap(), "a-b");
    }

    #[test]
    fn the_written_key_is_not_printed() {
        let value = Spelling::Quoted.write(&Key::new("order-4711").unwrap()).unwrap();
        assert!(!format!("{value:?}").contains("4711"));
    }
}
