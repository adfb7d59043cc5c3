//! Fault 7: what a call says after all its rounds.

use std::time::Duration;

use idempotency_agent::{Compat, Ledger};
use idempotency_core::{Folio, LedgerLayout, LedgerStore, Motion, Sheets, StoreError, clock::Timestamp};
use idempotency_store_memory::MemoryLedger;

use crate::scene::{Provider, memory, policy};

/// A store in which somebody makes what is in doubt pending again whenever a call claims, and in doubt once more before
/// it reads.
struct Restless(MemoryLedger);

impl LedgerStore for Restless {
    fn layout(&self) -> LedgerLayout {
        LedgerStore::layout(&self.0)
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let pending = |head: &String| head.replace("\"status\":\"ambiguous\"", "\"status\":\"pending\"");
        let law =
            |folio: &Folio, now| law(&Folio { head: folio.head.as_ref().map(pending), ..folio.clone() }, now);
        self.0.transact(scope, sheets, law).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        self.0.read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.0.forget(idle, at_most).await
    }
}

#[tokio::test(start_paused = true)]
async fn after_all_rounds_what_stands_there_is_said_and_in_the_original_that_it_is_in_flight() {
    for (compat, says) in [(Compat::Mended, "ambiguous"), (Compat::Strict, "in_flight")] {
        let store = Restless(memory().with_layout(LedgerLayout::Whole));
        let builder =
            Ledger::builder(store).policy(policy().compat(compat).pending(Duration::from_secs(600)));
        let clock = crate::scene::RuntimeClock::new();
        let (ledger, provider) = (builder.clock(clock).build().unwrap(), Provider::default());
        assert!(
            !ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx)).await.unwrap().is_done()
        );
        let waiting = ledger.effect("conversation", "mail").wait(Duration::from_secs(300));
        let outcome = waiting.execute(|fx| provider.ok(fx)).await.unwrap();
        assert_eq!((outcome.name(), provider.count()), (says, 1));
    }
}
