//! What the tests of the door share.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotency_agent::{
    Compat, EffectContext, EffectError, EffectKey, Event, EventKind, Intent, Ledger, LedgerBuilder,
    LedgerScope, Policy,
    ledger::{Effect, Status},
};
use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Sheets, StoreError, StoreErrorKind,
    clock::{Clock, Timestamp},
};
use idempotency_store_memory::MemoryLedger;

/// A clock that goes with the runtime's, which tests may stop and move.
#[derive(Clone)]
pub(crate) struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    pub(crate) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_767_225_600_000_000).plus(self.0.elapsed())
    }
}

pub(crate) fn memory() -> MemoryLedger {
    MemoryLedger::new().with_clock(RuntimeClock::new())
}

pub(crate) fn builder() -> LedgerBuilder<MemoryLedger> {
    Ledger::builder(memory()).policy(policy())
}

pub(crate) fn policy() -> Policy {
    Policy::new().pending(Duration::from_secs(10)).lease(Duration::from_secs(5))
}

pub(crate) fn ledger() -> Ledger<MemoryLedger> {
    builder().build().unwrap()
}

/// The ledger of the original, on one document.
pub(crate) fn original() -> LedgerBuilder<MemoryLedger> {
    let store = memory().with_layout(LedgerLayout::Whole);
    Ledger::builder(store).policy(policy().compat(Compat::Strict)).clock(RuntimeClock::new())
}

/// A provider that counts what reaches it.
#[derive(Clone, Default)]
pub(crate) struct Provider(Arc<AtomicU32>);

impl Provider {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn send(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// An effect that happens.
    pub(crate) async fn ok(&self, _: EffectContext) -> Result<u32, EffectError> {
        Ok(self.send())
    }

    /// An effect that happens, and whose answer is lost.
    pub(crate) async fn lost(&self, _: EffectContext) -> Result<u32, EffectError> {
        self.send();
        Err(EffectError::unknown("timed out"))
    }

    /// An effect that does not happen.
    pub(crate) async fn refused(&self, _: EffectContext) -> Result<u32, EffectError> {
        Err(EffectError::not_applied("no"))
    }
}

pub(crate) fn scope() -> LedgerScope {
    LedgerScope::new("conversation").unwrap()
}

pub(crate) fn key(intent: &str) -> EffectKey {
    EffectKey::of_intent(&Intent::new(intent).unwrap())
}

/// What stands under the key of an intent, and where it is.
pub(crate) async fn entry<S: LedgerStore>(ledger: &Ledger<S>, intent: &str) -> (Status, Effect) {
    let known = ledger.check(&scope(), &key(intent)).await.unwrap();
    (known.status.unwrap(), known.entry.unwrap())
}

/// The kinds of all events.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<EventKind>>>);

impl Ears {
    pub(crate) fn listen(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let heard = Arc::clone(&self.0);
        move |event: &Event| heard.lock().unwrap().push(event.kind.clone())
    }

    pub(crate) fn heard(&self) -> Vec<EventKind> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A store of which some calls fail.
pub(crate) struct Failing {
    pub(crate) store: MemoryLedger,
    /// How the next calls fail: before they are applied, or after.
    pub(crate) next: Mutex<Vec<Option<Fate>>>,
}

impl Failing {
    pub(crate) fn new(store: MemoryLedger) -> Self {
        Self { store, next: Mutex::default() }
    }

    /// Makes the next calls fail so, in this order.
    pub(crate) fn fail(&self, calls: &[Option<Fate>]) {
        *self.next.lock().unwrap() = calls.iter().rev().copied().collect();
    }
}

impl LedgerStore for Failing {
    fn layout(&self) -> LedgerLayout {
        LedgerStore::layout(&self.store)
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let next = self.next.lock().unwrap().pop().flatten();
        tokio::task::yield_now().await; // others come in between, as with a store elsewhere
        if next == Some(Fate::NotApplied) {
            return Err(StoreError::new(StoreErrorKind::Unavailable, Fate::NotApplied));
        }
        let done = self.store.transact(scope, sheets, law).await;
        match next {
            Some(fate) => Err(StoreError::new(StoreErrorKind::Unavailable, fate)),
            None => done,
        }
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        self.store.read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.store.forget(idle, at_most).await
    }
}
