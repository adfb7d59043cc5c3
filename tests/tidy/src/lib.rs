//! The rules of the house that a compiler does not know, as functions over what stands in the repository.
//!
//! A rule takes text and answers with the [`Offence`]s it found in it, so that each can be shown a sample that breaks
//! it. `tests/repository.rs` gives them the repository itself.

use std::fmt;

pub mod floors;
pub mod manifests;
pub mod names;
pub mod readme;
pub mod repository;
pub mod sizes;
pub mod source;

/// A place where a rule is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offence {
    /// The file or package.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl Offence {
    /// An offence at `place`.
    pub fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}
