//! A payload as what its identity is hashed from: numbers keep their kind, and nothing is lost silently.

use serde::Serialize;

use super::{
    Members, Raw,
    canonical::{is_portable_float, is_portable_whole},
    number::{is_number, is_written_whole},
    scan,
};

mod serializer;

use serializer::TreeSerializer;

/// How deep a payload may be nested.
const DEEPEST: usize = 200;

/// A payload.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// An integer of any size: its digits.
    Whole(String),
    /// A number written with a point or an exponent.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object; names do not repeat.
    Map(indexmap::IndexMap<String, Self>),
}

/// Why a payload identifies nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// A number that is not one, or infinite.
    #[error("a payload holds no number that is not finite")]
    NotFinite,
    /// Half of a surrogate pair, in text of JSON.
    #[error("a payload holds no half of a surrogate pair")]
    LoneSurrogate,
    /// Nested deeper than 200.
    #[error("a payload is not nested deeper than 200")]
    TooDeep,
    /// Text that is not JSON.
    #[error("the payload is not JSON")]
    NotJson(#[from] super::NotJson),
    /// Something JSON has no form for: bytes, or a map whose keys are no text.
    #[error("JSON has no form for {0}")]
    NoForm(&'static str),
    /// What the payload's own `Serialize` said.
    #[error("the payload does not serialize: {0}")]
    Refused(String),
    /// A number that other languages write in another way, where only portable ones are wanted.
    #[error(
        "other languages write a number of the payload in another way: pass integers below 2^53, and ids as text"
    )]
    NotPortable,
}

impl Tree {
    /// What `payload` serializes to.
    ///
    /// # Errors
    /// [`PayloadError`] when JSON cannot hold it.
    pub fn of(payload: &(impl Serialize + ?Sized)) -> Result<Self, PayloadError> {
        payload.serialize(TreeSerializer { room: DEEPEST })
    }

    /// Reads JSON text. Of two members of one name the later one stands.
    ///
    /// # Errors
    /// [`PayloadError`] when it is not JSON, or holds half of a surrogate pair.
    pub fn read(text: &str) -> Result<Self, PayloadError> {
        Self::read_value(scan::one_value(text)?, DEEPEST)
    }

    fn read_value(text: &str, room: usize) -> Result<Self, PayloadError> {
        let below = room.checked_sub(1).ok_or(PayloadError::TooDeep)?;
        Ok(match text.as_bytes() {
            [b'{', ..] => {
                let members: Members = super::members(text)?;
                if scan::has_lone_surrogate(text) {
                    return Err(PayloadError::LoneSurrogate);
                }
                let read =
                    |(name, value): (String, Raw)| Ok((name, Self::read_value(value.as_str(), below)?));
                Self::Map(members.into_iter().map(read).collect::<Result<_, PayloadError>>()?)
            }
            [b'[', ..] => {
                let items = scan::items(text)?;
                Self::List(
                    items.into_iter().map(|item| Self::read_value(item, below)).collect::<Result<_, _>>()?,
                )
            }
            [b'"', ..] if scan::has_lone_surrogate(text) => return Err(PayloadError::LoneSurrogate),
            [b'"', ..] => Self::Text(scan::unquoted(text).unwrap_or_default().into_owned()),
            b"null" => Self::Null,
            b"true" => Self::Bool(true),
            b"false" => Self::Bool(false),
            b"NaN" => Self::Float(f64::NAN),
            b"Infinity" => Self::Float(f64::INFINITY),
            b"-Infinity" => Self::Float(f64::NEG_INFINITY),
            _ if is_number(text) && is_written_whole(text) => Self::Whole(text.to_owned()),
            _ => Self::Float(text.parse().map_err(|_| super::NotJson { at: 0 })?),
        })
    }

    /// Whether every language that writes the same keys writes its numbers alike.
    pub fn is_portable(&self) -> bool {
        match self {
            Self::Null | Self::Bool(_) | Self::Text(_) => true,
            Self::Whole(digits) => is_portable_whole(digits),
            Self::Float(float) => is_portable_float(*float),
            Self::List(items) => items.iter().all(Self::is_portable),
            Self::Map(members) => members.values().all(Self::is_portable),
        }
    }
}
