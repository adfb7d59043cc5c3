//! Bytes as a JSON file can say them.

use serde::{Deserialize, Deserializer, de};

/// The longest text that a few words may stand for.
const LONGEST: usize = 16 * 1024 * 1024;

/// Bytes of a header or a body. Text may hold templates such as `{{k}}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    /// UTF-8.
    Text(String),
    /// Anything.
    Encoded(Encoded),
    /// The same again and again.
    Repeated(Repeated),
    /// Text filled up to a length.
    Padded(Padded),
}

/// `{"base64": "AP8="}`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encoded {
    /// The bytes.
    #[serde(deserialize_with = "decode")]
    pub base64: Vec<u8>,
}

/// `{"repeat": ["x", 1000]}`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// What, and how often; 16 MiB at most.
    #[serde(deserialize_with = "repeated")]
    pub repeat: (String, usize),
}

/// `{"pad": ["{{k}}", 255]}`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Padded {
    /// The text, and the length in bytes up to which it is followed by the letter a; 16 MiB at most.
    #[serde(deserialize_with = "padded")]
    pub pad: (String, usize),
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    use base64::{Engine, prelude::BASE64_STANDARD};

    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(de::Error::custom)
}

fn repeated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(String, usize), D::Error> {
    let (text, times) = Deserialize::deserialize(deserializer)?;
    bounded(String::len(&text).saturating_mul(times)).map(|()| (text, times))
}

fn padded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(String, usize), D::Error> {
    let (text, length) = Deserialize::deserialize(deserializer)?;
    bounded(length).map(|()| (text, length))
}

fn bounded<E: de::Error>(length: usize) -> Result<(), E> {
    if length > LONGEST {
        return Err(E::custom(format_args!("{length} bytes are more than {LONGEST}")));
    }
    Ok(())
}
