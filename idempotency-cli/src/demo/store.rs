//! A worker's way to the store, which ends with the worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotency_core::{Folio, LedgerLayout, LedgerStore, Motion, Sheets, StoreError, clock::Timestamp};

/// A store as one worker reaches it. Once the worker is dead, nothing of what it still asks for is answered or done.
pub(super) struct Reached<S> {
    pub(super) store: Arc<S>,
    pub(super) is_dead: Arc<AtomicBool>,
}

impl<S> Reached<S> {
    async fn unless_dead(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

impl<S: LedgerStore> LedgerStore for Reached<S> {
    fn layout(&self) -> LedgerLayout {
        self.store.layout()
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        self.unless_dead().await;
        self.store.transact(scope, sheets, law).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        self.unless_dead().await;
        self.store.read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.unless_dead().await;
        self.store.forget(idle, at_most).await
    }
}
