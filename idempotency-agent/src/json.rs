//! JSON as foreign writers leave it: objects taken apart into members whose values stay the text they were.
//!
//! A scope's document is shared with writers in other languages. Some of what they write no strict parser accepts: a
//! bare `NaN`, half of a surrogate pair, nesting without an end, integers of any size. One such value in one entry must
//! not cost the others, so a value is only *skipped over* until somebody asks for it, and is written back as it was.

use std::{borrow::Cow, fmt};

mod canonical;
mod number;
mod scan;
mod tree;

pub(crate) use canonical::canonical;
pub use number::Number;
pub use tree::{PayloadError, Tree};

/// A JSON value as text, which may be more than strict JSON: see the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(Box<str>);

/// Text that is not JSON, even leniently read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no JSON at byte {at}")]
pub struct NotJson {
    /// The byte at which it ceases to be JSON.
    pub at: usize,
}

impl Raw {
    /// The text of one value, with white space around it or not.
    ///
    /// # Errors
    /// [`NotJson`] when it is not one value.
    pub fn new(text: &str) -> Result<Self, NotJson> {
        Ok(Self(scan::one_value(text)?.into()))
    }

    /// What `value` serializes to.
    ///
    /// # Errors
    /// What its [`Serialize`](serde::Serialize) says.
    pub fn of(value: &(impl serde::Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_string(value)?.into_boxed_str()))
    }

    /// The value null.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The text as it stands.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// The string it is. Half of a surrogate pair reads as U+FFFD.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        scan::unquoted(&self.0)
    }

    /// The number it is.
    pub fn to_number(&self) -> Option<Number> {
        Number::read(&self.0)
    }

    /// The value as `T` reads it. What strict JSON does not know is read as what is nearest: half of a surrogate pair as
    /// U+FFFD, `NaN` and the infinities as null.
    ///
    /// # Errors
    /// When it is not a `T`, or nested more than 127 deep.
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0).or_else(|_| serde_json::from_str(&scan::strict(&self.0)))
    }

    /// The same value without the character NUL in its strings and names: no PostgreSQL document holds it.
    pub(crate) fn without_nul(self) -> Self {
        if self.0.contains("\\u0000") { Self(scan::without_nul(&self.0).into_boxed_str()) } else { self }
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The members of an object, in order; of two of one name the later one stands.
pub(crate) type Members = indexmap::IndexMap<String, Raw>;

/// Takes the object in `text` apart.
///
/// # Errors
/// [`NotJson`] when `text` is not one object.
pub(crate) fn members(text: &str) -> Result<Members, NotJson> {
    let mut members = Members::new();
    scan::each_member(text, |name, value| {
        members.insert(name, Raw(value.into()));
    })?;
    Ok(members)
}

/// Puts an object together.
pub(crate) struct ObjectWriter(String);

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    pub(crate) fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&scan::quoted(name));
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    pub(crate) fn number(&mut self, name: &str, value: Number) -> &mut Self {
        self.raw(name, &value.to_string())
    }

    pub(crate) fn maybe_number(&mut self, name: &str, value: Option<Number>) -> &mut Self {
        self.raw(name, &value.map_or_else(|| "null".to_owned(), |value| value.to_string()))
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(name, &scan::quoted(value))
    }

    pub(crate) fn maybe_text(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        self.raw(name, &value.map_or_else(|| "null".to_owned(), scan::quoted))
    }

    pub(crate) fn members(&mut self, members: &Members) -> &mut Self {
        for (name, value) in members {
            self.raw(name, value.as_str());
        }
        self
    }

    pub(crate) fn end(&mut self) -> String {
        self.0.push('}');
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests;
