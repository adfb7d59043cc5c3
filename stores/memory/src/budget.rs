//! How much the records may take, and how much they take.

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotency_core::{Address, Phase, Record};

/// What one record counts in bytes besides its outcome: itself in its box, its place in the map with the room a map keeps
/// free, and its place in the order of claims.
/// In it is the room of a short outcome, so that a run can always end with a tombstone.
pub const RECORD_BYTES: usize =
    size_of::<Record>() + 2 * size_of::<(Address, Box<Record>)>() + size_of::<Address>() + RESERVED;

/// How many bytes of an outcome every record has room for from its claim on.
const RESERVED: usize = 256;

/// What something takes out of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    records: usize,
    bytes: usize,
}

impl Cost {
    pub(crate) const NOTHING: Self = Self { records: 0, bytes: 0 };

    pub(crate) fn of(record: Option<&Record>) -> Self {
        let Some(record) = record else { return Self::NOTHING };
        let outcome = match &record.phase {
            Phase::Completed { outcome, .. } => outcome.bytes.len(),
            _ => 0,
        };
        Self { records: 1, bytes: RECORD_BYTES + outcome.saturating_sub(RESERVED) }
    }
}

/// A bound on records and bytes that many threads draw from.
#[derive(Debug)]
pub(crate) struct Budget {
    records: Account,
    bytes: Account,
}

impl Budget {
    pub(crate) const fn new(max_records: usize, max_bytes: usize) -> Self {
        Self { records: Account::new(max_records), bytes: Account::new(max_bytes) }
    }

    pub(crate) const fn max_bytes(&self) -> usize {
        self.bytes.limit
    }

    /// Replaces the cost `before` by `after`, or changes nothing when that is more than there is.
    pub(crate) fn exchange(&self, before: Cost, after: Cost) -> Result<(), Exceeded> {
        self.records.exchange(before.records, after.records)?;
        self.bytes.exchange(before.bytes, after.bytes).inspect_err(|Exceeded| {
            self.records.give_back(after.records, before.records);
        })
    }

    pub(crate) fn give_back(&self, cost: Cost) {
        self.records.give_back(cost.records, 0);
        self.bytes.give_back(cost.bytes, 0);
    }

    pub(crate) fn records(&self) -> usize {
        self.records.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.taken.load(Ordering::Relaxed)
    }
}

/// More was asked of a budget than it has left.
#[derive(Debug)]
pub(crate) struct Exceeded;

#[derive(Debug)]
struct Account {
    limit: usize,
    taken: AtomicUsize,
}

impl Account {
    const fn new(limit: usize) -> Self {
        Self { limit, taken: AtomicUsize::new(0) }
    }

    fn exchange(&self, before: usize, after: usize) -> Result<(), Exceeded> {
        if after <= before {
            self.give_back(before, after);
            return Ok(());
        }
        let more = after - before;
        let sum = |taken: usize| taken.checked_add(more).filter(|sum| *sum <= self.limit);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum) {
            Ok(_) => Ok(()),
            Err(_) => Err(Exceeded),
        }
    }

    fn give_back(&self, before: usize, after: usize) {
        if before != after {
            self.taken.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}
