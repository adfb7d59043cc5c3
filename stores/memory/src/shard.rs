//! One part of the records, under one lock.
//!
//! Beside the map stands the order in which its records were claimed first: exactly one place for each record. To make
//! room, a shard looks at the places at its front and moves those that must stay to the back, so that the work of one
//! call is bounded and the next call looks further.

use std::collections::{HashMap, VecDeque};

use foldhash::quality::RandomState;
use idempotency_core::{
    Address, Phase, Record,
    clock::Timestamp,
    machine::{self, Step},
};

use crate::{
    budget::{Budget, Cost, Exceeded},
    builder::Completed,
};

/// How many records one call looks at in one shard to make room.
const GLANCE: usize = 16;

#[derive(Debug)]
pub(crate) struct Shard {
    /// Hashed with a secret of this process: an address is an unkeyed digest of a key that the caller chose, so a caller
    /// can search for keys whose digests share bits, and must not be able to aim at one bucket.
    ///
    /// Each record stands in a box, so that a map that grows moves and faults in a few words for each of them.
    records: HashMap<Address, Box<Record>, RandomState>,
    order: VecDeque<Address>,
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self { records: HashMap::with_hasher(RandomState::default()), order: VecDeque::new() }
    }

    pub(crate) fn find(&self, address: &Address) -> Option<&Record> {
        self.records.get(address).map(Box::as_ref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Address, &Record)> {
        self.records.iter().map(|(address, record)| (address, &**record))
    }

    /// Lets `rule` decide what becomes of the record at `address`, and writes it if the budget allows.
    pub(crate) fn step<V>(
        &mut self,
        address: &Address,
        budget: &Budget,
        rule: impl FnOnce(Option<&Record>) -> Step<V>,
    ) -> Result<V, Exceeded> {
        let found = self.records.get_mut(address).map(Box::as_mut);
        let Step { write, verdict } = rule(found.as_deref());
        let Some(record) = write else { return Ok(verdict) };
        budget.exchange(Cost::of(found.as_deref()), Cost::of(Some(&record)))?;
        match found {
            Some(found) => *found = record,
            None => {
                self.records.insert(*address, Box::new(record));
                self.order.push_back(*address);
            }
        }
        Ok(verdict)
    }

    /// Removes one record that may go, among the first few in the order of claims.
    pub(crate) fn make_room(&mut self, budget: &Budget, completed: Completed, now: Timestamp) {
        let free = |record: &Record| {
            matches!(record.phase, Phase::Released { .. }) || machine::is_removable(record, now)
        };
        let evicted = |record: &Record| {
            completed == Completed::IsEvicted && matches!(record.phase, Phase::Completed { .. })
        };
        match self.glance(free).or_else(|| self.glance(evicted)) {
            Some(place) => {
                let address = self.order.remove(place).expect("the glance found this place");
                self.remove(&address, budget);
            }
            None => {
                let seen = GLANCE.min(self.order.len());
                self.order.rotate_left(seen);
            }
        }
    }

    /// The first place whose record may go, if it is near the front.
    fn glance(&self, may_go: impl Fn(&Record) -> bool) -> Option<usize> {
        let mut places = self.order.iter().take(GLANCE);
        places.position(|address| self.find(address).is_some_and(&may_go))
    }

    /// Removes at most `at_most` of the records that the law lets go, and says how many.
    pub(crate) fn purge(&mut self, budget: &Budget, at_most: u32, now: Timestamp) -> u32 {
        let mut removed = 0;
        let mut order = std::mem::take(&mut self.order);
        order.retain(|address| {
            let goes = removed < at_most
                && self.find(address).is_some_and(|record| machine::is_removable(record, now));
            if goes {
                self.remove(address, budget);
                removed += 1;
            }
            !goes
        });
        self.order = order;
        if self.records.len() < self.records.capacity() / 4 {
            self.records.shrink_to(2 * self.records.len());
            self.order.shrink_to(2 * self.order.len());
        }
        removed
    }

    fn remove(&mut self, address: &Address, budget: &Budget) {
        let removed = self.records.remove(address);
        budget.give_back(Cost::of(removed.as_deref()));
    }
}
