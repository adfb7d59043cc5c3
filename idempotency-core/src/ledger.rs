//! The port for ledgers of agents: one atomic read-modify-write of what a scope has written down.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use crate::{StoreError, clock::Timestamp};

/// What stands written for a scope: a head, and in the [`Split`](LedgerLayout::Split) layout sheets beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folio {
    /// The head; none where nobody has written yet.
    pub head: Option<String>,
    /// The sheets that were asked for and are there, by name.
    pub sheets: BTreeMap<String, String>,
}

/// What to write for a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// The new head.
    pub head: String,
    /// The sheets that change, by name; none takes one away. Empty in the [`Whole`](LedgerLayout::Whole) layout.
    pub sheets: BTreeMap<String, Option<String>>,
    /// Whether nothing of the scope is pending or in doubt, so that the scope may be forgotten once nobody has written for
    /// long.
    pub settled: bool,
}

/// What a law makes of a folio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Motion<V> {
    /// Leaves what stands there untouched, and answers.
    Keep(V),
    /// Writes, and answers once that is durable.
    Write(Revision, V),
    /// Asks to be called once more within the same transaction, with every sheet of the scope.
    ReadAll,
}

/// How a store keeps what a scope has written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerLayout {
    /// All of it in the head. What other programs share.
    Whole,
    /// A head that stays small, and sheets that are read and written one by one. What a long scope needs.
    Split,
}

/// Which sheets to read beside the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sheets<'s> {
    /// Those of these names.
    Named(&'s [String]),
    /// All of them.
    All,
}

/// Where the ledgers of agents stand.
///
/// # Laws
/// 1. **A transaction is one.** The folio a law is given is the one its revision replaces; between the two nobody else
///    writes to the scope. Scopes do not hold one another up.
/// 2. **A law may be called more than once**; the last call counts, and what it was given is what stood there.
/// 3. **The store's clock is read within the transaction**, after any wait for others.
/// 4. **Texts are texts**: they come back as they were given, or, where the backend reads JSON, as text of the same value.
/// 5. **Nothing unsettled is forgotten**, not by [`forget`](Self::forget) and not by a backend's own expiry.
/// 6. **A failure says what it left behind**: see [`Fate`](crate::Fate).
pub trait LedgerStore: Send + Sync + 'static {
    /// How it keeps what a scope has written down.
    fn layout(&self) -> LedgerLayout;

    /// Reads the head and the sheets named, has `law` decide on them and on the time, and does what it says.
    fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> impl Future<Output = Result<V, StoreError>> + Send;

    /// Reads without writing, and says at what time.
    fn read(
        &self,
        scope: &str,
        sheets: Sheets<'_>,
    ) -> impl Future<Output = Result<(Folio, Timestamp), StoreError>> + Send;

    /// Removes at most `at_most` settled scopes that nobody has written to for `idle`, and says how many this call removed.
    /// A store whose backend expires them by itself answers 0.
    fn forget(&self, idle: Duration, at_most: u32) -> impl Future<Output = Result<u32, StoreError>> + Send;
}

impl<S: LedgerStore + ?Sized> LedgerStore for Arc<S> {
    fn layout(&self) -> LedgerLayout {
        (**self).layout()
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        (**self).transact(scope, sheets, law).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        (**self).read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        (**self).forget(idle, at_most).await
    }
}
