//! The suite for ledgers is worth what it refuses: ledgers that are wrong in one way each, and the laws that find them out.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use idempotency_core::{
    Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, clock::Timestamp,
};
use idempotency_store_contract::ledger::{LedgerCandidate, grade};
use idempotency_store_memory::MemoryLedger;

/// What is wrong with a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// Writes over what somebody else wrote since it read.
    ReadThenWrite,
    /// Writes nothing where somebody else did since it read, and says that it has written: the update met no row.
    LostWriteCounts,
    KeepingWrites,
    UnsettledIsForgotten,
    IdleIsIgnored,
    BoundIsIgnored,
    SheetsAreLost,
    EverySheetIsNone,
    NamesIgnoreCase,
    AllScopesAreOne,
    TimeGoesBack,
}

struct Flawed {
    right: MemoryLedger,
    flaw: Flaw,
    looks: AtomicU64,
}

impl Flawed {
    fn name<'s>(&self, scope: &'s str) -> Cow<'s, str> {
        match self.flaw {
            Flaw::NamesIgnoreCase => scope.to_lowercase().into(),
            Flaw::AllScopesAreOne => "scope".into(),
            _ => scope.into(),
        }
    }

    fn time(&self, now: Timestamp) -> Timestamp {
        match self.flaw {
            Flaw::TimeGoesBack => {
                let looks = self.looks.fetch_add(1, Ordering::SeqCst);
                Timestamp::from_micros(now.as_micros() - 3_600_000_000 * looks)
            }
            _ => now,
        }
    }

    fn written(&self, revision: Revision) -> Revision {
        match self.flaw {
            Flaw::UnsettledIsForgotten => Revision { settled: true, ..revision },
            Flaw::SheetsAreLost => Revision { sheets: [].into(), ..revision },
            _ => revision,
        }
    }

    async fn read_then_write<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let mut asked = Sheets::Named(sheets);
        loop {
            let (read, now) = self.right.read(scope, asked).await?;
            let (revision, verdict) = match law(&read, now) {
                Motion::Keep(verdict) => return Ok(verdict),
                Motion::Write(revision, verdict) => (revision, verdict),
                Motion::ReadAll => {
                    asked = Sheets::All;
                    continue;
                }
            };
            tokio::task::yield_now().await; // the others' turn
            let write = |found: &Folio, _| match self.flaw == Flaw::LostWriteCounts && found.head != read.head
            {
                true => Motion::Keep(()),
                false => Motion::Write(revision.clone(), ()),
            };
            self.right.transact(scope, &[], write).await?;
            return Ok(verdict);
        }
    }
}

impl LedgerStore for Flawed {
    fn layout(&self) -> LedgerLayout {
        self.right.layout()
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let scope = self.name(scope);
        if matches!(self.flaw, Flaw::ReadThenWrite | Flaw::LostWriteCounts) {
            return self.read_then_write(&scope, sheets, law).await;
        }
        let mut has_asked = false;
        let flawed = |folio: &Folio, now| {
            let mut folio = folio.clone();
            if has_asked && self.flaw == Flaw::EverySheetIsNone {
                folio.sheets.clear();
            }
            match law(&folio, self.time(now)) {
                Motion::Keep(verdict) if self.flaw == Flaw::KeepingWrites => {
                    let head = folio.head.unwrap_or_else(|| "{}".to_owned());
                    Motion::Write(Revision { head, sheets: [].into(), settled: true }, verdict)
                }
                Motion::Keep(verdict) => Motion::Keep(verdict),
                Motion::Write(revision, verdict) => Motion::Write(self.written(revision), verdict),
                Motion::ReadAll => {
                    has_asked = true;
                    Motion::ReadAll
                }
            }
        };
        self.right.transact(&scope, sheets, flawed).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let (folio, now) = self.right.read(&self.name(scope), sheets).await?;
        Ok((folio, self.time(now)))
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        let idle = if self.flaw == Flaw::IdleIsIgnored { Duration::ZERO } else { idle };
        let at_most = if self.flaw == Flaw::BoundIsIgnored { u32::MAX } else { at_most };
        self.right.forget(idle, at_most).await
    }
}

struct Wrong(Flaw);

impl LedgerCandidate for Wrong {
    type Store = Flawed;

    async fn open(&self) -> Flawed {
        Flawed { right: MemoryLedger::new(), flaw: self.0, looks: AtomicU64::new(0) }
    }
}

/// The flaw breaks these laws and no other.
fn breaks(flaw: Flaw, laws: &[&str]) {
    let broken = grade(&Wrong(flaw)).into_iter().filter(|grade| grade.result.is_err()).map(|grade| grade.law);
    let broken: BTreeSet<_> = broken.collect();
    assert_eq!(broken, laws.iter().copied().collect(), "what {flaw:?} breaks");
}

macro_rules! flaws {
    ($($flaw:ident breaks [$($law:ident),* $(,)?];)+) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $flaw() {
                breaks(Flaw::$flaw, &[$(stringify!($law)),*]);
            }
        )+
    };
}

flaws! {
    None breaks [];
    ReadThenWrite breaks [no_write_is_lost, one_of_many_is_first];
    LostWriteCounts breaks [no_write_is_lost, one_of_many_is_first];
    KeepingWrites breaks [a_law_that_keeps_writes_nothing];
    UnsettledIsForgotten breaks [nothing_unsettled_is_forgotten];
    IdleIsIgnored breaks [nothing_unsettled_is_forgotten];
    BoundIsIgnored breaks [forgetting_keeps_to_its_bound];
    SheetsAreLost breaks [sheets_are_read_and_written_one_by_one, a_law_may_ask_for_every_sheet];
    EverySheetIsNone breaks [a_law_may_ask_for_every_sheet];
    NamesIgnoreCase breaks [odd_names_are_names];
    AllScopesAreOne breaks [
        scopes_are_independent,
        odd_names_are_names,
        one_of_many_is_first,
        nothing_unsettled_is_forgotten,
        forgetting_keeps_to_its_bound,
    ];
    TimeGoesBack breaks [time_goes_on];
}
