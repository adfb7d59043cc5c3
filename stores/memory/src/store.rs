//! The store: the machine under the lock of a shard.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use idempotency_core::{
    Address, Bells, Bid, Claim, Fate, Fence, Inspect, Keep, Lease, Notify, Operation, Outcome, Record,
    Release, Resolution, Select, Settled, Store, StoreError, StoreErrorKind, Vacant,
    clock::{Clock, Timestamp},
    machine::{self, Step},
};

use crate::{
    Builder,
    budget::{Budget, Exceeded},
    builder::Completed,
    shard::Shard,
};

/// Records in the memory of this process. Clones share them.
#[derive(Clone)]
pub struct MemoryStore(Arc<Inner>);

struct Inner {
    shards: Box<[Mutex<Shard>]>,
    budget: Budget,
    completed: Completed,
    clock: Arc<dyn Clock>,
    /// The shard that gives room next.
    hand: AtomicUsize,
    bells: Bells,
}

impl MemoryStore {
    /// An empty store with the default bounds: 100,000 records, 256 MiB.
    pub fn new() -> Self {
        Self::open(Builder::default())
    }

    /// Starts a store with other bounds.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn open(bounds: Builder) -> Self {
        let shards = 0..bounds.shards.next_power_of_two();
        Self(Arc::new(Inner {
            shards: shards.map(|_| Mutex::new(Shard::new())).collect(),
            budget: Budget::new(bounds.max_records, bounds.max_bytes),
            completed: bounds.completed,
            clock: bounds.clock,
            hand: AtomicUsize::new(0),
            bells: Bells::new(),
        }))
    }

    /// How many records there are.
    pub fn records(&self) -> usize {
        self.0.budget.records()
    }

    /// How many bytes they take, as the bound counts them.
    pub fn bytes(&self) -> usize {
        self.0.budget.bytes()
    }
}

impl Inner {
    fn shard(&self, address: &Address) -> MutexGuard<'_, Shard> {
        let [.., low, high] = *address.as_bytes(); // not those the map hashes
        let number = usize::from(u16::from_le_bytes([low, high]));
        open(&self.shards[number & (self.shards.len() - 1)])
    }

    /// Decides one call by `rule`, on the time read under the lock. A write for which there is no room is decided anew
    /// once room was made.
    fn step<V>(
        &self,
        address: &Address,
        rule: impl Fn(Option<&Record>, Timestamp) -> Step<V>,
    ) -> Result<V, StoreError> {
        let attempt = || {
            let mut shard = self.shard(address);
            let now = self.clock.now();
            shard.step(address, &self.budget, |record| rule(record, now))
        };
        let mut rounds = self.shards.len();
        loop {
            match attempt() {
                Ok(verdict) => return Ok(verdict),
                Err(Exceeded) if rounds == 0 => {
                    return Err(StoreError::new(StoreErrorKind::Full, Fate::NotApplied));
                }
                Err(Exceeded) => self.make_room(),
            }
            rounds -= 1;
        }
    }

    /// Decides an ending, and wakes who waits for it.
    fn end(
        &self,
        address: &Address,
        rule: impl Fn(Option<&Record>, Timestamp) -> Step<Settled>,
    ) -> Result<Settled, StoreError> {
        let settled = self.step(address, rule);
        self.bells.ring(address);
        settled
    }

    /// Looks into one shard, the next one in turn, for a record that may go.
    fn make_room(&self) {
        let hand = self.hand.fetch_add(1, Ordering::Relaxed);
        let mut shard = open(&self.shards[hand % self.shards.len()]);
        shard.make_room(&self.budget, self.completed, self.clock.now());
    }

    /// An outcome with bytes of its own: a slice would keep the buffer it was cut from, which no bound counts.
    fn own(&self, outcome: &Outcome) -> Result<Outcome, StoreError> {
        if outcome.bytes.len() > self.max_outcome_bytes() {
            return Err(StoreError::new(StoreErrorKind::TooLarge, Fate::NotApplied));
        }
        Ok(Outcome { bytes: Bytes::copy_from_slice(&outcome.bytes), ..*outcome })
    }

    const fn max_outcome_bytes(&self) -> usize {
        self.budget.max_bytes() / 16
    }
}

/// Takes the lock. A panic under it cannot leave a record half written, so a poisoned one is as good as any.
fn open(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("records", &self.records()).finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        self.0.step(op.address(), |record, now| machine::claim(record, op, bid, now))
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let shard = self.0.shard(op.address());
        Ok(machine::look(shard.find(op.address()), op, self.0.clock.now()))
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        self.0.step(&lease.address, |record, now| machine::renew(record, &lease.holder, term, now))
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        let outcome = self.0.own(outcome)?;
        self.0
            .end(&lease.address, |record, now| machine::complete(record, &lease.holder, &outcome, keep, now))
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        self.0.end(&lease.address, |record, now| machine::release(record, &lease.holder, why, now))
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let mut removed = 0;
        for shard in &self.0.shards {
            let mut shard = open(shard);
            removed += shard.purge(&self.0.budget, at_most - removed, self.0.clock.now());
        }
        Ok(removed)
    }

    fn max_outcome_bytes(&self) -> usize {
        self.0.max_outcome_bytes()
    }
}

impl Notify for MemoryStore {
    async fn ended(&self, address: &Address) {
        self.0.bells.rung(address).await;
    }
}

impl Inspect for MemoryStore {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        Ok(self.0.shard(address).find(address).cloned())
    }

    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let mut page = BTreeMap::new();
        for shard in &self.0.shards {
            let shard = open(shard);
            let now = self.0.clock.now();
            let wanted = shard
                .iter()
                .filter(|(address, _)| after.is_none_or(|after| *address > after))
                .filter(|(_, record)| select == Select::All || machine::is_in_doubt(record, now));
            for (address, record) in wanted {
                page.insert(*address, record.clone());
                if page.len() > at_most as usize {
                    page.pop_last();
                }
            }
        }
        Ok(page.into_iter().collect())
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let resolution = match resolution {
            Resolution::Applied(outcome, keep) => Resolution::Applied(self.0.own(outcome)?, *keep),
            Resolution::NotApplied => Resolution::NotApplied,
        };
        self.0.end(address, |record, now| machine::resolve(record, fence, &resolution, now))
    }
}
