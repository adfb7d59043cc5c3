//! Ledgers of agents in memory: folios under one lock.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use idempotency_core::{
    Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError,
    clock::{Clock, SteadyClock, Timestamp},
};

/// Ledgers of agents in the memory of this process, for tests, demos and agents of a single process. Clones share them.
///
/// Nothing bounds it but [`forget`](LedgerStore::forget): call it from time to time.
#[derive(Clone)]
pub struct MemoryLedger {
    scopes: Arc<Mutex<HashMap<String, Scope>>>,
    layout: LedgerLayout,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Scope {
    head: String,
    sheets: BTreeMap<String, String>,
    settled: bool,
    written: Option<Timestamp>,
}

impl MemoryLedger {
    /// An empty ledger in the split layout, on the host's clock.
    pub fn new() -> Self {
        Self { scopes: Arc::default(), layout: LedgerLayout::Split, clock: Arc::new(SteadyClock::new()) }
    }

    /// The same in `layout`. To be chosen before anything is written.
    #[must_use]
    pub fn with_layout(self, layout: LedgerLayout) -> Self {
        Self { layout, ..self }
    }

    /// The same on another clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner) // a law that panics has written nothing
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryLedger").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl LedgerStore for MemoryLedger {
    fn layout(&self) -> LedgerLayout {
        self.layout
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let mut scopes = self.open();
        let now = self.clock.now();
        let found = scopes.get(scope);
        let mut asked = Sheets::Named(sheets);
        loop {
            match law(&folio(found, asked), now) {
                Motion::Keep(verdict) => return Ok(verdict),
                Motion::Write(revision, verdict) => {
                    scopes.entry(scope.to_owned()).or_default().revise(revision, now);
                    return Ok(verdict);
                }
                Motion::ReadAll => asked = Sheets::All,
            }
        }
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let scopes = self.open();
        Ok((folio(scopes.get(scope), sheets), self.clock.now()))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let mut scopes = self.open();
        let now = self.clock.now();
        let may_go =
            |scope: &Scope| scope.settled && scope.written.is_none_or(|at| at.plus(idle).is_past(now));
        let most = usize::try_from(at_most).unwrap_or(usize::MAX);
        let going = scopes.iter().filter(|(_, scope)| may_go(scope)).map(|(name, _)| name.clone());
        let going: Vec<String> = going.take(most).collect();
        for name in &going {
            scopes.remove(name);
        }
        Ok(u32::try_from(going.len()).unwrap_or(at_most))
    }
}

impl Scope {
    fn revise(&mut self, revision: Revision, now: Timestamp) {
        self.head = revision.head;
        self.settled = revision.settled;
        self.written = Some(now);
        for (name, sheet) in revision.sheets {
            match sheet {
                Some(text) => drop(self.sheets.insert(name, text)),
                None => drop(self.sheets.remove(&name)),
            }
        }
    }
}

fn folio(scope: Option<&Scope>, sheets: Sheets<'_>) -> Folio {
    let Some(scope) = scope else { return Folio::default() };
    let sheets = match sheets {
        Sheets::All => scope.sheets.clone(),
        Sheets::Named(names) => {
            names.iter().filter_map(|name| Some((name.clone(), scope.sheets.get(name)?.clone()))).collect()
        }
    };
    Folio { head: Some(scope.head.clone()), sheets }
}
