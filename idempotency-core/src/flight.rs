//! Copies that wait for the run of their operation: one of them asks the store on behalf of all.
//!
//! All copies of one payload under one key that are in this process share a *flight*. One of its members at a time is
//! its scout: it alone claims and looks. Whatever it finds it tells the others; the run of this process tells them its
//! outcome itself. When the run releases the key, the scout becomes the next claimer, and no one else.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit, watch},
    time::Instant,
};

use crate::{Address, Claim, Operation, StoreErrorKind, Vacant, policy::Bounds};

/// The flights of an engine.
#[derive(Debug)]
pub(crate) struct Flights {
    table: Mutex<HashMap<Address, Weak<Flight>>>,
    waiters: AtomicUsize,
    max_waiters: usize,
    max_waiters_per_key: usize,
}

impl Flights {
    pub(crate) fn new(bounds: &Bounds) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            waiters: AtomicUsize::new(0),
            max_waiters: bounds.max_waiters,
            max_waiters_per_key: bounds.max_waiters_per_key,
        })
    }

    /// Joins the flight of `op`; `None` when a bound is reached, or the key is in flight with another payload.
    pub(crate) fn join(self: &Arc<Self>, op: &Operation) -> Option<Member> {
        let flight = self.flight(op)?;
        let room = |bound: usize| move |count: usize| (count < bound).then_some(count + 1);
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        self.waiters.fetch_update(set, get, room(self.max_waiters)).ok()?;
        if flight.waiters.fetch_update(set, get, room(self.max_waiters_per_key)).is_err() {
            self.waiters.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Member { flight })
    }

    pub(crate) fn waiters(&self) -> usize {
        self.waiters.load(Ordering::Acquire)
    }

    fn flight(self: &Arc<Self>, op: &Operation) -> Option<Arc<Flight>> {
        // Declared first, so that it is dropped after the table is free: the last to hold a flight takes it out of there.
        let known;
        let mut table = self.table();
        known = table.get(op.address()).and_then(Weak::upgrade);
        if let Some(flight) = known.as_ref().filter(|flight| !flight.is_over()) {
            return (flight.op == *op).then(|| Arc::clone(flight));
        }
        let flight = Arc::new(Flight {
            flights: Arc::clone(self),
            op: op.clone(),
            stage: watch::Sender::new(Stage::Unknown),
            baton: Semaphore::new(1),
            nudge: Notify::new(),
            waiters: AtomicUsize::new(0),
        });
        table.insert(*op.address(), Arc::downgrade(&flight));
        Some(flight)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Address, Weak<Flight>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The copies of one payload under one key that are in this process.
#[derive(Debug)]
pub(crate) struct Flight {
    flights: Arc<Flights>,
    op: Operation,
    stage: watch::Sender<Stage>,
    baton: Semaphore,
    nudge: Notify,
    waiters: AtomicUsize,
}

/// What is known of the operation.
#[derive(Debug, Clone)]
pub(crate) enum Stage {
    /// Nothing: it may be free.
    Unknown,
    /// Somebody runs it, with a lease until then.
    Running { until: Instant },
    /// It is over for every copy alike.
    Over(Claim<Vacant>),
    /// The store failed for the one that asked.
    Failed(StoreErrorKind),
}

impl Flight {
    /// Says what is known now. What is over stays over.
    pub(crate) fn tell(&self, news: Stage) {
        self.stage.send_if_modified(|stage| {
            let open = !stage.is_over();
            if open {
                *stage = news;
            }
            open
        });
    }

    /// The run in this process ended without an outcome: the scout should ask again.
    pub(crate) fn nudge(&self) {
        self.tell(Stage::Unknown);
        self.nudge.notify_one();
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    fn is_over(&self) -> bool {
        self.stage.borrow().is_over()
    }
}

impl Stage {
    pub(crate) const fn is_running(&self) -> bool {
        matches!(self, Self::Running { .. })
    }

    const fn is_over(&self) -> bool {
        matches!(self, Self::Over(_) | Self::Failed(_))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut table = self.flights.table();
        // Another flight may have taken this one's place since.
        if table.get(self.op.address()).is_some_and(|flight| flight.strong_count() == 0) {
            table.remove(self.op.address());
        }
    }
}

/// One waiting copy.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) flight: Arc<Flight>,
}

impl Member {
    /// Waits for the turn to be the scout, or for the flight to be over.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        tokio::select! {
            biased;
            stage = self.over() => Turn::Over(stage),
            baton = self.flight.baton.acquire() => match baton {
                Ok(baton) => Turn::Scout(Scout { member: self, _baton: baton, pause: FIRST_PAUSE }),
                Err(_) => unreachable!("the baton is never closed"),
            },
        }
    }

    /// How long the run that is waited for holds its lease, as far as is known.
    pub(crate) fn left(&self) -> Duration {
        match &*self.flight.stage.borrow() {
            Stage::Running { until } => until.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        }
    }

    async fn over(&self) -> Stage {
        let mut stage = self.flight.stage.subscribe();
        match stage.wait_for(Stage::is_over).await {
            Ok(stage) => stage.clone(),
            Err(_) => unreachable!("the sender lives in the flight"),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.flight.waiters.fetch_sub(1, Ordering::AcqRel);
        self.flight.flights.waiters.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What a member's wait came to.
pub(crate) enum Turn<'a> {
    Over(Stage),
    Scout(Scout<'a>),
}

/// The member that asks the store on behalf of all; dropped, the next one does.
pub(crate) struct Scout<'a> {
    member: &'a Member,
    _baton: SemaphorePermit<'a>,
    pause: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Scout<'_> {
    /// Waits until it is worth asking the store again, or the flight is over: a run of this process ended, `woken` did,
    /// or a pause has passed that grows from look to look.
    pub(crate) async fn pause(&mut self, woken: impl Future<Output = ()>) {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        tokio::select! {
            _ = self.member.over() => {}
            () = self.member.flight.nudge.notified() => {}
            () = woken => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
