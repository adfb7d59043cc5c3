//! A correct store in a few lines: a map under one lock, every call decided by the machine.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Fate, Fence, Inspect, Keep, Lease, Operation, Outcome, Record, Release, Resolution,
    Select, Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Clock, ManualClock, Timestamp},
    machine::{self, Step},
};

/// The longest outcome: small, so that one byte more is cheap to try.
pub(crate) const MAX_OUTCOME_BYTES: usize = 1 << 16;

/// The machine over a map.
#[derive(Debug)]
pub(crate) struct Reference {
    /// What the store reads the time from.
    pub(crate) clock: Arc<ManualClock>,
    records: Mutex<BTreeMap<Address, Record>>,
}

impl Reference {
    /// An empty store on `clock`.
    pub(crate) fn new(clock: Arc<ManualClock>) -> Self {
        Self { clock, records: Mutex::default() }
    }

    /// The records, under their lock.
    pub(crate) fn records(&self) -> MutexGuard<'_, BTreeMap<Address, Record>> {
        self.records.lock().expect("no call panics under the lock")
    }

    /// Decides one call at `address` by `rule` and writes what it says.
    pub(crate) fn step<V>(
        &self,
        address: &Address,
        rule: impl FnOnce(Option<&Record>, Timestamp) -> Step<V>,
    ) -> V {
        let mut records = self.records();
        let Step { write, verdict } = rule(records.get(address), self.clock.now());
        if let Some(record) = write {
            records.insert(*address, record);
        }
        verdict
    }

    /// Removes at most `at_most` records of which `may_go` holds.
    pub(crate) fn remove(&self, at_most: u32, may_go: impl Fn(&Record, Timestamp) -> bool) -> u32 {
        let (mut records, now) = (self.records(), self.clock.now());
        let removable = records.iter().filter(|(_, record)| may_go(record, now));
        let chosen: Vec<Address> = removable.map(|(address, _)| *address).take(at_most as usize).collect();
        records.retain(|address, _| !chosen.contains(address));
        chosen.len() as u32
    }

    /// Refuses an outcome that is too long.
    pub(crate) fn check_length(&self, outcome: &Outcome) -> Result<(), StoreError> {
        if outcome.bytes.len() > self.max_outcome_bytes() {
            return Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied));
        }
        Ok(())
    }
}

impl Store for Reference {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        Ok(self.step(op.address(), |record, now| machine::claim(record, op, bid, now)))
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        Ok(machine::look(self.records().get(op.address()), op, self.clock.now()))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        Ok(self.step(&lease.address, |record, now| machine::renew(record, &lease.holder, term, now)))
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.check_length(outcome)?;
        Ok(self
            .step(&lease.address, |record, now| machine::complete(record, &lease.holder, outcome, keep, now)))
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        Ok(self.step(&lease.address, |record, now| machine::release(record, &lease.holder, why, now)))
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        Ok(self.remove(at_most, machine::is_removable))
    }

    fn max_outcome_bytes(&self) -> usize {
        MAX_OUTCOME_BYTES
    }
}

impl Inspect for Reference {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        Ok(self.records().get(address).cloned())
    }

    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let (records, now) = (self.records(), self.clock.now());
        let wanted = records
            .iter()
            .filter(|(address, _)| after.is_none_or(|after| *address > after))
            .filter(|(_, record)| select == Select::All || machine::is_in_doubt(record, now));
        Ok(wanted.map(|(address, record)| (*address, record.clone())).take(at_most as usize).collect())
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        Ok(self.step(address, |record, now| machine::resolve(record, fence, resolution, now)))
    }
}
