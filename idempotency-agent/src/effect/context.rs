//! What an effect is told while it is attempted.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{EffectError, EffectKey, LedgerScope, ProviderKey};

/// What an effect is told while it is attempted.
#[derive(Clone)]
pub struct EffectContext {
    pub(super) scope: LedgerScope,
    pub(super) key: EffectKey,
    pub(super) intent: String,
    pub(super) attempt: u64,
    pub(super) provider_key: ProviderKey,
    pub(super) token: Option<u64>,
    pub(super) deadline: Instant,
    pub(super) cancelled: CancellationToken,
    pub(super) point: Point,
    pub(super) pass: Arc<Pass>,
}

pub(super) type Pass =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), EffectError>> + Send>> + Send + Sync;

impl EffectContext {
    /// The effect's scope.
    pub const fn scope(&self) -> &LedgerScope {
        &self.scope
    }

    /// The effect's key.
    pub const fn key(&self) -> &EffectKey {
        &self.key
    }

    /// What kind of effect it is.
    pub fn intent(&self) -> &str {
        &self.intent
    }

    /// Which attempt this is, from 1.
    pub const fn attempt(&self) -> u64 {
        self.attempt
    }

    /// What to send to the provider as its idempotency key.
    pub const fn idempotency_key(&self) -> &ProviderKey {
        &self.provider_key
    }

    /// The run's fencing token, for whoever compares them. None outside of runs.
    pub const fn fencing_token(&self) -> Option<u64> {
        self.token
    }

    /// Until when the attempt has time. Then it is dropped, and nobody knows what became of it.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Is cancelled when the attempt is over: for what it started elsewhere.
    pub const fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Marks, durably, that from here on the effect may have happened. To be called just before bytes leave.
    ///
    /// # Errors
    /// When the attempt must not go on: it was given up, or its run may no longer write, or the mark could not be written.
    /// Return this error: nothing has happened.
    pub async fn point_of_no_return(&self) -> Result<(), EffectError> {
        match self.point.read() {
            Passing::Undeclared => return Err(EffectError::not_applied(NotDeclared)),
            Passing::Passed => return Ok(()),
            Passing::Before | Passing::Now => {}
        }
        self.point.set(Passing::Now);
        let passed = (self.pass)().await;
        self.point.set(if passed.is_ok() { Passing::Passed } else { Passing::Before });
        passed
    }
}

impl fmt::Debug for EffectContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectContext")
            .field("scope", &self.scope)
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the effect was asked for without a point of no return")]
struct NotDeclared;

/// Where an attempt is with respect to its point of no return.
#[derive(Debug, Clone)]
pub(super) struct Point(Arc<AtomicU8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passing {
    /// It marks none: it may have happened from its beginning on.
    Undeclared,
    /// It has not come to it.
    Before,
    /// The mark is being written.
    Now,
    /// It may have happened.
    Passed,
}

impl Passing {
    const ALL: [Self; 4] = [Self::Undeclared, Self::Before, Self::Now, Self::Passed];

    /// Whether it is certain that nothing happened.
    pub(super) const fn is_before(self) -> bool {
        matches!(self, Self::Before)
    }
}

impl Point {
    pub(super) fn new(passing: Passing) -> Self {
        Self(Arc::new(AtomicU8::new(passing as u8)))
    }

    pub(super) fn read(&self) -> Passing {
        Passing::ALL[usize::from(self.0.load(Ordering::SeqCst)) % Passing::ALL.len()]
    }

    fn set(&self, passing: Passing) {
        self.0.store(passing as u8, Ordering::SeqCst);
    }
}
