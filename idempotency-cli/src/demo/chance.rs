//! What goes wrong, and when: drawn from a seed.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use fastrand::Rng;

/// A source of chance that all of a world share.
#[derive(Clone)]
pub(super) struct Chance(Rc<RefCell<Drawn>>);

struct Drawn {
    rng: Rng,
    faults: BTreeMap<&'static str, u32>,
}

/// What becomes of a job's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Fine,
    /// The worker dies right after it has sent a reply.
    WorkerCrash,
    /// The job is delivered once more at once.
    Duplicate,
}

/// What becomes of a request to the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Fine,
    TimeoutBeforeSend,
    TimeoutAfterSend,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(Drawn { rng: Rng::with_seed(seed), faults: BTreeMap::new() })))
    }

    pub(super) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.0.borrow_mut().rng.u64(from..=to))
    }

    pub(super) fn second_message(&self) -> bool {
        self.happens("customerBurst", 0.25)
    }

    pub(super) fn delivery(&self) -> Delivery {
        let drawn = self.0.borrow_mut().rng.f64();
        if drawn < 0.10 {
            Delivery::WorkerCrash
        } else if drawn < 0.25 {
            self.count("duplicateDelivery");
            Delivery::Duplicate
        } else {
            Delivery::Fine
        }
    }

    pub(super) fn answer(&self) -> Answer {
        let drawn = self.0.borrow_mut().rng.f64();
        if drawn < 0.15 {
            self.count("timeoutAfterSend");
            Answer::TimeoutAfterSend
        } else if drawn < 0.25 {
            self.count("timeoutBeforeSend");
            Answer::TimeoutBeforeSend
        } else {
            Answer::Fine
        }
    }

    /// Counts a fault when it happens: a worker that is to die may end before it sends anything.
    pub(super) fn count(&self, fault: &'static str) {
        *self.0.borrow_mut().faults.entry(fault).or_default() += 1;
    }

    pub(super) fn faults(&self) -> BTreeMap<&'static str, u32> {
        self.0.borrow().faults.clone()
    }

    fn happens(&self, fault: &'static str, probability: f64) -> bool {
        let happens = self.0.borrow_mut().rng.f64() < probability;
        if happens {
            self.count(fault);
        }
        happens
    }
}
