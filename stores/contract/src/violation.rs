//! What a broken law looks like.

use std::{error::Error, fmt, io};

use idempotency_core::StoreError;

/// A law that a store broke: what it wants, and what was seen instead.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// What the law wants at the step that failed.
    pub wants: &'static str,
    /// What the store did.
    pub seen: String,
}

impl Violation {
    pub(crate) fn new(wants: &'static str, seen: &impl fmt::Debug) -> Self {
        Self { wants, seen: format!("{seen:?}") }
    }

    /// The same violation, seen at `place`.
    pub(crate) fn at(self, place: &str) -> Self {
        Self { seen: format!("{} (at {place})", self.seen), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the law wants: {}\n         seen: {}", self.wants, self.seen)
    }
}

/// The text of [`Display`](fmt::Display): a failed test prints this form.
impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Violation {}

impl From<StoreError> for Violation {
    fn from(error: StoreError) -> Self {
        Self::new("the call is answered", &error)
    }
}

/// A line to the server cannot even be laid.
impl From<io::Error> for Violation {
    fn from(error: io::Error) -> Self {
        Self::new("a proxy stands before the server", &error)
    }
}

/// Ends the law with a violation when what is seen does not match the pattern.
macro_rules! demand {
    ($seen:expr, $pattern:pat $(if $guard:expr)?, $wants:literal) => {{
        let seen = $seen;
        if !matches!(&seen, $pattern $(if $guard)?) {
            return Err($crate::Violation::new($wants, &seen));
        }
    }};
}

/// Ends the law with a violation when what is seen is not equal to what is wanted.
macro_rules! demand_eq {
    ($seen:expr, $wanted:expr, $wants:literal) => {{
        let (seen, wanted) = ($seen, $wanted);
        if seen != wanted {
            let seen = format!("{seen:?}\n       wanted: {wanted:?}");
            return Err($crate::Violation { wants: $wants, seen });
        }
    }};
}

pub(crate) use {demand, demand_eq};
