//! Ledgers of agents in memory: folios under one lock.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, StoreErrorKind,
    clock::{Clock, SteadyClock, Timestamp},
};

/// How long a settled scope stays that nobody writes to, where its room is needed.
const TO_LIVE: Duration = Duration::from_secs(30 * 86_400);

/// How long a full ledger does not look again for what may go.
const PAUSE: Duration = Duration::from_secs(1);

/// What a scope takes beside its texts, in bytes: its place in the map, with the room a map keeps free.
const SCOPE_BYTES: usize = 2 * size_of::<(String, Scope)>();

/// What a sheet takes beside its texts, in bytes.
const SHEET_BYTES: usize = 2 * size_of::<(String, String)>();

/// Ledgers of agents in the memory of this process, for tests, demos and agents of a single process. Clones share them.
///
/// It is bounded: 100,000 scopes and 256 MiB unless set. Where a new scope finds no room, settled ones go to which nobody
/// has written for 30 days, and if there are none the new scope is refused with [`StoreErrorKind::Full`]: nothing was
/// begun. What is pending, in doubt or remembered is never dropped for room. Scopes that stand may go on until twice the
/// bytes are taken, so that what runs can be recorded.
#[derive(Clone)]
pub struct MemoryLedger {
    shelves: Arc<Mutex<Shelves>>,
    layout: LedgerLayout,
    clock: Arc<dyn Clock>,
    max_scopes: usize,
    max_bytes: usize,
    to_live: Duration,
}

/// All scopes, and what they take.
#[derive(Default)]
struct Shelves {
    scopes: HashMap<String, Scope>,
    bytes: usize,
    /// When it was last looked for what may go, in vain.
    searched: Option<Timestamp>,
}

#[derive(Default)]
struct Scope {
    head: String,
    sheets: BTreeMap<String, String>,
    settled: bool,
    written: Option<Timestamp>,
    bytes: usize,
}

impl MemoryLedger {
    /// An empty ledger in the split layout, on the host's clock.
    pub fn new() -> Self {
        Self {
            shelves: Arc::default(),
            layout: LedgerLayout::Split,
            clock: Arc::new(SteadyClock::new()),
            max_scopes: 100_000,
            max_bytes: 256 << 20,
            to_live: TO_LIVE,
        }
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

    /// The same with at most `max_scopes` scopes: 100,000 unless set.
    #[must_use]
    pub fn max_scopes(self, max_scopes: usize) -> Self {
        Self { max_scopes, ..self }
    }

    /// The same with no new scope once `max_bytes` are taken, and nothing new in any once twice as many are: 256 MiB unless
    /// set.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// The same with settled scopes that may go for others' room once nobody has written to them for `to_live`: 30 days
    /// unless set. No less than the retention of those who write, which is all that a scope is remembered for.
    #[must_use]
    pub fn to_live(self, to_live: Duration) -> Self {
        Self { to_live, ..self }
    }

    fn open(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner) // a law that panics has written nothing
    }

    /// Writes, if there is room for it or room can be made.
    fn write(
        &self,
        all: &mut Shelves,
        scope: &str,
        revision: Revision,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let found = all.scopes.get(scope);
        let (is_new, before) = (found.is_none(), found.map_or(0, |found| found.bytes));
        let after = Scope::bytes_after(found, scope, &revision);
        let most = if is_new { self.max_bytes } else { self.max_bytes.saturating_mul(2) };
        let is_room = |all: &Shelves| {
            let taken = all.bytes - before + after;
            (taken <= most || after <= before) && (!is_new || all.scopes.len() < self.max_scopes)
        };
        if !is_room(all) {
            all.make_room(scope, self.to_live, now);
        }
        if !is_room(all) {
            return Err(StoreError::new(StoreErrorKind::Full, Fate::NotApplied));
        }
        all.bytes = all.bytes - before + after;
        all.scopes.entry(scope.to_owned()).or_default().revise(revision, after, now);
        Ok(())
    }
}

impl Shelves {
    /// Removes what is settled and has been idle for `idle`, but for `kept`.
    fn make_room(&mut self, kept: &str, idle: Duration, now: Timestamp) {
        if self.searched.is_some_and(|at| !at.plus(PAUSE).is_past(now)) {
            return;
        }
        let before = self.scopes.len();
        let Self { scopes, bytes, .. } = self;
        scopes.retain(|name, scope| {
            let stays = name == kept || !scope.may_go(idle, now);
            if !stays {
                *bytes -= scope.bytes;
            }
            stays
        });
        self.searched = Some(now).filter(|_| self.scopes.len() == before);
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
        let mut all = self.open();
        let now = self.clock.now();
        let mut asked = Sheets::Named(sheets);
        loop {
            match law(&folio(all.scopes.get(scope), asked), now) {
                Motion::Keep(verdict) => return Ok(verdict),
                Motion::Write(revision, verdict) => {
                    self.write(&mut all, scope, revision, now)?;
                    return Ok(verdict);
                }
                Motion::ReadAll => asked = Sheets::All,
            }
        }
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let all = self.open();
        Ok((folio(all.scopes.get(scope), sheets), self.clock.now()))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let mut all = self.open();
        let now = self.clock.now();
        let most = usize::try_from(at_most).unwrap_or(usize::MAX);
        let going =
            all.scopes.iter().filter(|(_, scope)| scope.may_go(idle, now)).map(|(name, _)| name.clone());
        let going: Vec<String> = going.take(most).collect();
        for name in &going {
            all.bytes -= all.scopes.remove(name).map_or(0, |scope| scope.bytes);
        }
        Ok(u32::try_from(going.len()).unwrap_or(at_most))
    }
}

impl Scope {
    /// What the scope `name` takes in bytes once it is revised.
    fn bytes_after(found: Option<&Self>, name: &str, revision: &Revision) -> usize {
        let none = BTreeMap::new();
        let sheets = found.map_or(&none, |scope| &scope.sheets);
        let change = |(name, sheet): (&String, &Option<String>)| {
            let of = |text: &String| SHEET_BYTES + name.len() + text.len();
            (sheets.get(name).map_or(0, of), sheet.as_ref().map_or(0, of))
        };
        let kept = found.map_or(SCOPE_BYTES + name.len(), |scope| scope.bytes - scope.head.len());
        let (gone, new) =
            revision.sheets.iter().map(change).fold((0, 0), |sum, (gone, new)| (sum.0 + gone, sum.1 + new));
        kept - gone + new + revision.head.len()
    }

    fn may_go(&self, idle: Duration, now: Timestamp) -> bool {
        self.settled && self.written.is_none_or(|at| at.plus(idle).is_past(now))
    }

    fn revise(&mut self, revision: Revision, bytes: usize, now: Timestamp) {
        self.head = revision.head;
        self.settled = revision.settled;
        self.written = Some(now);
        self.bytes = bytes;
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
