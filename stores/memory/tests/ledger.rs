//! The ledger in memory under every law of its suite, in both layouts.

use idempotency_core::LedgerLayout;
use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
use idempotency_store_memory::MemoryLedger;

struct Memory(LedgerLayout);

impl LedgerCandidate for Memory {
    type Store = MemoryLedger;

    async fn open(&self) -> MemoryLedger {
        MemoryLedger::new().with_layout(self.0)
    }
}

mod whole {
    use super::*;

    ledger_contract!(Memory(LedgerLayout::Whole));
}

mod split {
    use super::*;

    ledger_contract!(Memory(LedgerLayout::Split));
}
