//! Finding out how an effect in doubt turned out.

use std::{error::Error, future::Future, pin::Pin};

use crate::{
    ProviderKey,
    ledger::{Effect, Raw},
};

/// An effect in doubt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InDoubt {
    /// What stands in the ledger.
    pub entry: Effect,
    /// The key its provider was given.
    pub provider_key: ProviderKey,
}

/// How it turned out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconciled {
    /// It happened, and came to this, if that is known.
    Committed(Option<Raw>),
    /// It did not happen. Only what can no longer happen is that: a request still on its way is not.
    NotApplied,
    /// That cannot be found out now.
    Unknown,
}

/// What a [`Reconciler`] answers with.
pub type Finding = Pin<Box<dyn Future<Output = Result<Reconciled, Box<dyn Error + Send + Sync>>> + Send>>;

/// Finds out how effects in doubt turned out, by asking whoever would know: the provider, by its idempotency key.
///
/// One call asks at a time, and never while the attempt still has time.
pub trait Reconciler: Send + Sync + 'static {
    /// Finds out. An error counts as not knowing.
    fn find_out(&self, question: InDoubt) -> Finding;
}

impl<F, Fut> Reconciler for F
where
    F: Fn(InDoubt) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Reconciled, Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    fn find_out(&self, question: InDoubt) -> Finding {
        Box::pin(self(question))
    }
}
