//! The port every store serves, and its laws.

use std::{error::Error, fmt, future::Future, sync::Arc, time::Duration};

use crate::{Bid, Claim, CorruptRecord, Keep, Lease, Operation, Outcome, Release, Settled, Vacant};

/// Where records stand.
///
/// Implementers write `async fn`; there are no default methods, so nothing is inherited by accident. The suite in
/// `idempotency-store-contract` checks every law below against [`machine`](crate::machine), which is their exact form.
///
/// # Laws
/// 1. **One write decides.** A claim is decided by one atomic write. No read-then-write, no lock around a read.
/// 2. **The store's clock decides.** Durations cross the port, never points of time. The clock is read in the deciding
///    write, after any wait for a lock.
/// 3. **The holder decides an ending.** `renew`, `complete` and `release` compare [`Lease::holder`] and nothing else of
///    the lease. One whose lease only lapsed may still end; one that was taken over ends nothing.
/// 4. **Fences rise.** A grant's fence is the greater of the last fence + 1 and the clock in microseconds.
/// 5. **Repeating an input changes nothing.** The second copy of a claim, renewal or ending gets the first one's answer.
/// 6. **Bytes are bytes.** Addresses, holders, fingerprints and outcomes come back as they were given.
/// 7. **Nothing held or in doubt expires**, not by purge and not by a backend's own expiry.
/// 8. **A failure says what it left behind**: see [`Fate`].
pub trait Store: Send + Sync + 'static {
    /// Bids for the right to run `op`: rows 1 to 9 of the law.
    fn claim(
        &self,
        op: &Operation,
        bid: &Bid,
    ) -> impl Future<Output = Result<Claim<Lease>, StoreError>> + Send;

    /// The verdict a new holder's claim would get, without a write. It may be overtaken by the next claim.
    fn look(&self, op: &Operation) -> impl Future<Output = Result<Claim<Vacant>, StoreError>> + Send;

    /// Extends the lease to at least `term` from now: row 10.
    fn renew(
        &self,
        lease: &Lease,
        term: Duration,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send;

    /// Ends the run with `outcome`: rows 11 and 12.
    fn complete(
        &self,
        lease: &Lease,
        outcome: &Outcome,
        keep: Keep,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send;

    /// Gives the lease back: rows 13 to 15.
    fn release(
        &self,
        lease: &Lease,
        why: Release,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send;

    /// Removes at most `at_most` records that row 19 allows, and says how many this call removed. A store whose backend
    /// expires records by itself answers 0.
    fn purge(&self, at_most: u32) -> impl Future<Output = Result<u32, StoreError>> + Send;

    /// The longest outcome, in bytes, this store can hold. Doors lower their own cap to it.
    fn max_outcome_bytes(&self) -> usize;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        (**self).claim(op, bid).await
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        (**self).look(op).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        (**self).renew(lease, term).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        (**self).complete(lease, outcome, keep).await
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        (**self).release(lease, why).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        (**self).purge(at_most).await
    }

    fn max_outcome_bytes(&self) -> usize {
        (**self).max_outcome_bytes()
    }
}

/// Whether a failed write may have happened all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It did not happen.
    NotApplied,
    /// It may have happened: the reply was lost, or the call was cut short.
    Unknown,
}

/// What kind of failure a store met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The backend does not answer, answers too late, or is too busy. Trying again may help.
    Unavailable,
    /// The store holds as much as it may and nothing of it can go.
    Full,
    /// The outcome is longer than [`Store::max_outcome_bytes`].
    TooLarge,
    /// What stands at the address cannot be read. It is neither run nor answered.
    Corrupt,
    /// The backend's schema is of another version, or absent.
    Schema,
    /// The backend refused the call for a reason that trying again will not mend.
    Refused,
}

impl StoreErrorKind {
    /// Its name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Full => "full",
            Self::TooLarge => "too_large",
            Self::Corrupt => "corrupt",
            Self::Schema => "schema",
            Self::Refused => "refused",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Unavailable => "the store does not answer",
            Self::Full => "the store is full and nothing in it may go",
            Self::TooLarge => "the outcome is longer than the store can hold",
            Self::Corrupt => "the stored record cannot be read",
            Self::Schema => "the store's schema is absent or of another version",
            Self::Refused => "the store refused the call",
        }
    }
}

/// A store call that failed.
#[derive(Debug)]
pub struct StoreError {
    /// What kind of failure.
    pub kind: StoreErrorKind,
    /// Whether the write may have happened.
    pub fate: Fate,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// A failure without a deeper cause.
    pub const fn new(kind: StoreErrorKind, fate: Fate) -> Self {
        Self { kind, fate, source: None }
    }

    /// The same failure, its write's fate another.
    #[must_use]
    pub fn with_fate(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }

    /// The same failure with the error that caused it.
    #[must_use]
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { source: Some(source.into()), ..self }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.text())
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Nothing was applied: a record that cannot be read is left as it is.
impl From<CorruptRecord> for StoreError {
    fn from(error: CorruptRecord) -> Self {
        Self::new(StoreErrorKind::Corrupt, Fate::NotApplied).with_source(error)
    }
}
