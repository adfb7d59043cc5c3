//! What an error of an effect says about whether the effect happened.

use std::{
    any::type_name,
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "tonic")]
mod tonic;

#[cfg(feature = "reqwest")]
pub use self::reqwest::ReqwestErrors;
#[cfg(feature = "tonic")]
pub use self::tonic::TonicErrors;

type BoxError = Box<dyn Error + Send + Sync>;

/// Whether an effect whose attempt failed has happened all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Applied {
    /// It has not: it may be attempted again.
    No,
    /// Nobody knows: it must not be attempted again until somebody finds out.
    Unknown,
}

/// Why an attempt failed, and what that says.
///
/// Any error becomes one by `?`, and says nothing: most errors of a call to somebody else come after it was sent. What is
/// known not to have happened is marked by [`not_applied`](Self::not_applied).
pub struct EffectError {
    source: BoxError,
    kind: &'static str,
    applied: Option<Applied>,
}

impl EffectError {
    /// The effect did not happen.
    pub fn not_applied<E: Into<BoxError>>(error: E) -> Self {
        Self { source: error.into(), kind: "NotApplied", applied: Some(Applied::No) }
    }

    /// Nobody knows whether it happened.
    pub fn unknown<E: Into<BoxError>>(error: E) -> Self {
        Self { source: error.into(), kind: short_name::<E>(), applied: Some(Applied::Unknown) }
    }

    /// What it was marked with, if it was.
    pub const fn mark(&self) -> Option<Applied> {
        self.applied
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn Error + 'static) {
        &*self.source
    }

    /// As a ledger records it: the error's kind and its text.
    pub(crate) fn record(&self) -> String {
        self.to_string()
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for EffectError {
    fn from(error: E) -> Self {
        Self { source: Box::new(error), kind: short_name::<E>(), applied: None }
    }
}

impl fmt::Display for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.source)
    }
}

impl fmt::Debug for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectError").field("source", &self.source).field("applied", &self.applied).finish()
    }
}

/// The last part of a type's name, without what it is generic in.
fn short_name<E>() -> &'static str {
    let name = type_name::<E>().trim_start_matches('&');
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Reads off an error whether the effect happened. Sources are worth walking: transports wrap what they know.
pub trait Classifier: Send + Sync + 'static {
    /// What `error` says.
    fn classify(&self, error: &(dyn Error + 'static)) -> Applied;
}

impl<F: Fn(&(dyn Error + 'static)) -> Applied + Send + Sync + 'static> Classifier for F {
    fn classify(&self, error: &(dyn Error + 'static)) -> Applied {
        self(error)
    }
}

/// The first of `error` and what it wraps that is an `E`.
#[cfg(any(feature = "reqwest", feature = "tonic"))]
fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut looked_at = Some(error);
    while let Some(error) = looked_at {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of IO names what its inner error wraps as its source, and not the inner error.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        looked_at = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// What `error` says: by its own mark, or by the first classifier there is. A classifier that panics knows nothing.
pub(crate) fn applied(error: &EffectError, by: Option<&Arc<dyn Classifier>>) -> Applied {
    error.applied.unwrap_or_else(|| {
        let ask = |classifier: &Arc<dyn Classifier>| {
            catch_unwind(AssertUnwindSafe(|| classifier.classify(error.source()))).unwrap_or(Applied::Unknown)
        };
        by.map_or(Applied::Unknown, ask)
    })
}
