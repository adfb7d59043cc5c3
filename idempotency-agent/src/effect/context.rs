//! What an effect is told while it is attempted.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    /// Return this error: nothing has happened, unless another part of the attempt came by here.
    pub async fn point_of_no_return(&self) -> Result<(), EffectError> {
        let Some(mark) = self.point.begin_mark()? else { return Ok(()) };
        (self.pass)().await?;
        mark.pass();
        Ok(())
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

#[derive(Debug, thiserror::Error)]
#[error("the attempt is over")]
struct Over;

/// Where an attempt is with respect to its point of no return, which may be marked from several places at once.
#[derive(Debug, Clone)]
pub(super) struct Point(Arc<Mutex<Marks>>);

#[derive(Debug)]
struct Marks {
    /// An attempt that marks no point of no return may have happened from its beginning on.
    is_declared: bool,
    /// How many marks are being written.
    written: u32,
    /// Whether one was: the effect may have happened, whatever becomes of the others.
    is_passed: bool,
    /// Whether the attempt is over: nothing may be sent any more.
    is_over: bool,
}

/// A mark that is being written. Dropped, it was not.
struct Mark<'p>(&'p Point);

impl Point {
    pub(super) fn new(is_declared: bool) -> Self {
        Self(Arc::new(Mutex::new(Marks { is_declared, written: 0, is_passed: false, is_over: false })))
    }

    /// Ends the attempt, and says whether it is certain that nothing happened. It stays so: no later mark is let through.
    pub(super) fn end(&self) -> bool {
        let mut marks = self.marks();
        marks.is_over = true;
        marks.is_declared && !marks.is_passed && marks.written == 0
    }

    /// Nothing where the point was passed already.
    fn begin_mark(&self) -> Result<Option<Mark<'_>>, EffectError> {
        let mut marks = self.marks();
        if !marks.is_declared {
            return Err(EffectError::not_applied(NotDeclared));
        }
        if marks.is_passed {
            return Ok(None);
        }
        if marks.is_over {
            return Err(EffectError::unknown(Over));
        }
        marks.written += 1;
        Ok(Some(Mark(self)))
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark<'_> {
    fn pass(self) {
        self.0.marks().is_passed = true;
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.marks().written -= 1;
    }
}
