//! A ledger that cannot be used.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotency_agent::Ledger;
use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Sheets, StoreError, StoreErrorKind, clock::Timestamp,
};
use idempotency_mcp::Guarded;
use idempotency_store_memory::MemoryLedger;
use rmcp::service::ServiceError;

use crate::scene::{Bank, answer, call, refund, result, status};

/// A store that is down until it is up.
struct Down {
    store: MemoryLedger,
    is_up: Arc<AtomicBool>,
}

impl LedgerStore for Down {
    fn layout(&self) -> LedgerLayout {
        LedgerStore::layout(&self.store)
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        match self.is_up.load(Ordering::SeqCst) {
            true => self.store.transact(scope, sheets, law).await,
            false => Err(StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied)),
        }
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        self.store.read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.store.forget(idle, at_most).await
    }
}

#[tokio::test]
async fn while_its_store_is_down_a_tool_that_writes_does_not_run_and_one_that_reads_does() {
    let is_up = Arc::new(AtomicBool::new(false));
    let ledger = Ledger::new(Down { store: MemoryLedger::new(), is_up: Arc::clone(&is_up) });
    let bank =
        Bank::with_ledger(&ledger, |guard| guard.scope("bank").tool("refund", Guarded::by_key())).unwrap();
    let client = bank.client().await;
    let Err(ServiceError::McpError(refused)) = answer(&client, refund(Some("k1"), "A")).await else {
        panic!("it was answered")
    };
    assert_eq!(refused.message, "the record of what was done cannot be used: this call did nothing");
    assert_eq!(bank.provider.posts(), 0);
    assert_eq!(status(&result(&client, call("balance", None, serde_json::json!({}))).await), "executed");
    is_up.store(true, Ordering::SeqCst);
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "executed");
    assert_eq!(bank.provider.posts(), 1);
}
