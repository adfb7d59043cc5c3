//! Many holders at once: one grant at a time, rising fences, and no outcome that did not count.
//!
//! What happened in between cannot be compared with the machine, since nobody knows the order in which the store took
//! the calls. What is known: a grant stood from the moment its claim was answered until its own ending was sent, unless
//! its lease may have lapsed by then; and a claim sent after another was answered came after it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use idempotency_core::{
    Address, Bid, Claim, Fence, Inspect, Keep, Lease, Media, Operation, Outcome, Release, Settled, Store,
    clock::{Clock, as_micros},
};
use tokio::task::JoinSet;

use super::{input::one_of, seed, steps};
use crate::{
    Time, Violation,
    scene::{Scene, operation},
    violation::demand,
};

const WORKERS: u32 = 8;

/// Eight holders on three keys, with time passing: grants never overlap a live lease, fences rise, and what is replayed
/// is the outcome of a completion that was told it counted.
pub(crate) async fn concurrent_history_grants_one_at_a_time<S: Store + Inspect>(
    scene: Scene<S>,
) -> Result<(), Violation> {
    let (seed, steps) = (seed(), steps(&scene) / 10);
    let steps = if matches!(scene.time, Time::Real) { steps.min(400) } else { steps };
    let keys = Arc::new([(); 3].map(|()| operation()));
    let (scene, log) = (Arc::new(scene), Arc::new(Log::start()));
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let rng = Rng::with_seed(seed + u64::from(number));
        let worker = Worker { scene: scene.clone(), keys: keys.clone(), log: log.clone(), rng };
        workers.spawn(worker.run(steps / WORKERS));
    }
    workers.join_all().await.into_iter().collect::<Result<(), Violation>>()?;
    log.seen().judge()
}

struct Worker<S> {
    scene: Arc<Scene<S>>,
    keys: Arc<[Operation; 3]>,
    log: Arc<Log>,
    rng: Rng,
}

impl<S: Store + Inspect> Worker<S> {
    async fn run(mut self, steps: u32) -> Result<(), Violation> {
        for _ in 0..steps {
            let op = one_of(&mut self.rng, &*self.keys).clone();
            self.step(&op).await?;
            if self.rng.u8(..8) == 0 {
                self.scene.pass(self.scene.brief() / 8).await;
            }
        }
        Ok(())
    }

    /// One claim and, when it is granted, one of the ways a run ends.
    async fn step(&mut self, op: &Operation) -> Result<(), Violation> {
        let bid = Bid { retention: self.scene.brief() / 2, lease: self.scene.brief(), ..self.scene.bid() };
        let (sent, at) = (self.log.tick(), self.log.reading(&self.scene.time));
        match self.scene.store.claim(op, &bid).await? {
            Claim::Granted(lease) => {
                let mut grant = Grant {
                    address: lease.address,
                    fence: lease.fence,
                    sent,
                    answered: self.log.tick(),
                    answered_at: self.log.reading(&self.scene.time),
                    may_lapse_at: at + as_micros(bid.lease),
                    ending_sent: u64::MAX,
                    completion: None,
                };
                self.dawdle().await;
                self.end(&lease, &mut grant).await?;
                self.log.seen().grants.push(grant);
            }
            Claim::Completed(outcome) => {
                let fence = outcome.bytes.first_chunk().copied().unwrap_or_default();
                let replay = (*op.address(), Fence::from_u64(u64::from_le_bytes(fence)));
                self.log.seen().replays.insert(replay);
            }
            Claim::InFlight { .. } | Claim::Expired => {}
            other => {
                return Err(Violation::new("a claim is granted, in flight, completed or expired", &other));
            }
        }
        self.dawdle().await;
        Ok(())
    }

    async fn end(&mut self, lease: &Lease, grant: &mut Grant) -> Result<(), Violation> {
        let ending = self.rng.u8(..4);
        if ending == 0 {
            return Ok(()); // the run dies, and its lease lapses
        }
        grant.ending_sent = self.log.tick();
        if ending == 1 {
            let _ = self.scene.store.release(lease, Release::NotApplied).await?;
            return Ok(());
        }
        let outcome = Outcome::whole(Media(1), lease.fence.as_u64().to_le_bytes().to_vec());
        let keep = Keep { replay: self.scene.brief() / 4, then_reject: Duration::ZERO };
        grant.completion = Some(self.scene.store.complete(lease, &outcome, keep).await?);
        Ok(())
    }

    async fn dawdle(&mut self) {
        for _ in 0..self.rng.u8(..4) {
            tokio::task::yield_now().await;
        }
    }
}

/// A grant, in the order of the log and on the time of the store.
#[derive(Debug, Clone)]
struct Grant {
    address: Address,
    fence: Fence,
    sent: u64,
    answered: u64,
    answered_at: u64,
    may_lapse_at: u64,
    ending_sent: u64,
    completion: Option<Settled>,
}

impl Grant {
    /// Whether this grant surely stood while `other` was asked for and given.
    fn surely_spans(&self, other: &Self) -> bool {
        self.answered < other.sent
            && other.answered < self.ending_sent
            && other.answered_at < self.may_lapse_at
    }
}

/// What all workers saw.
struct Log {
    start: Instant,
    ticks: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    grants: Vec<Grant>,
    /// Where an outcome was replayed, and the fence it bears.
    replays: BTreeSet<(Address, Fence)>,
}

impl Log {
    fn start() -> Self {
        Self { start: Instant::now(), ticks: AtomicU64::new(0), seen: Mutex::default() }
    }

    /// The next number in the order of what is sent and answered.
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// Microseconds that pass as they do for the store.
    fn reading(&self, time: &Time) -> u64 {
        match time {
            Time::Manual(clock) => clock.now().as_micros(),
            Time::Real => as_micros(self.start.elapsed()),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn judge(&self) -> Result<(), Violation> {
        for (place, one) in self.grants.iter().enumerate() {
            let same_key = |other: &&Grant| other.address == one.address;
            for other in self.grants[place + 1..].iter().filter(same_key) {
                demand!((one, other), (one, other) if one.fence != other.fence, "no fence is granted twice");
                for (first, then) in [(one, other), (other, one)] {
                    let rises = first.answered > then.sent || first.fence < then.fence;
                    demand!((rises, first, then), (true, ..), "a later grant has a higher fence");
                    let spans = first.surely_spans(then);
                    demand!((spans, first, then), (false, ..), "nothing is granted over a live lease");
                }
            }
        }
        let counted = self.grants.iter().filter(|grant| grant.completion == Some(Settled::Applied));
        let counted: BTreeSet<_> = counted.map(|grant| (grant.address, grant.fence)).collect();
        let strange: Vec<_> = self.replays.difference(&counted).collect();
        demand!(strange, strange if strange.is_empty(), "what is replayed was told that it counted");
        Ok(())
    }
}
