//! Customers, jobs and workers.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use idempotency_core::{
    LedgerStore, StoreError,
    clock::{Clock, Timestamp},
};
use tokio::{
    task::{JoinSet, LocalSet},
    time::{Duration, Instant, sleep},
};

use super::{
    agent::{self, Job, StoreTime},
    chance::{Chance, Delivery},
    provider::Provider,
    report::Side,
};

/// A clock that goes with the runtime's, which may be simulated.
#[derive(Clone)]
pub(super) struct RuntimeClock(Instant);

/// 2026-01-01T00:00:00Z
const BEGINNING: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

impl RuntimeClock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        BEGINNING.plus(self.0.elapsed())
    }
}

/// What both agents live in.
#[derive(Clone)]
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) provider: Provider,
    pub(super) names: String,
    /// How many messages there are in each conversation.
    inbound: Rc<RefCell<Vec<u32>>>,
}

/// What a job knows of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub(super) unanswered: Vec<u32>,
}

impl World {
    pub(super) fn new(seed: u64, names: String) -> Self {
        let chance = Chance::new(seed);
        let provider = Provider::new(chance.clone());
        Self { chance, provider, names, inbound: Rc::default() }
    }

    /// What stands in a conversation now.
    pub(super) fn read(&self, conversation: u32) -> Snapshot {
        let messages = 1..=self.inbound.borrow()[conversation as usize];
        let unanswered =
            messages.filter(|message| self.provider.log.answers(conversation, *message) == 0).collect();
        Snapshot { unanswered }
    }

    pub(super) async fn play_unguarded(self, conversations: u32) -> Side {
        self.play(conversations, agent::unguarded).await
    }

    pub(super) async fn play_guarded(
        self,
        conversations: u32,
        store: impl LedgerStore,
    ) -> Result<Side, StoreError> {
        let store = Arc::new(store);
        let time = StoreTime::of(&store, &self.names).await?;
        let worker = move |world: World, job: Job, crashes: bool| {
            let store = Arc::clone(&store);
            agent::guarded(world, job, crashes, store, time)
        };
        Ok(self.play(conversations, worker).await)
    }

    async fn play<W, F>(self, conversations: u32, worker: W) -> Side
    where
        W: Fn(World, Job, bool) -> F + Clone + 'static,
        F: Future<Output = ()> + 'static,
    {
        *self.inbound.borrow_mut() = vec![0; conversations as usize];
        let all = LocalSet::new();
        all.run_until(async {
            let mut customers = JoinSet::new();
            for conversation in 0..conversations {
                customers.spawn_local(self.clone().customer(conversation, worker.clone()));
            }
            while customers.join_next().await.is_some() {}
        })
        .await;
        self.told()
    }

    /// A customer writes once, or twice in a row; each message is a job.
    async fn customer<W, F>(self, conversation: u32, worker: W)
    where
        W: Fn(World, Job, bool) -> F + Clone + 'static,
        F: Future<Output = ()> + 'static,
    {
        let mut jobs = JoinSet::new();
        sleep(self.chance.millis(0, 20)).await;
        jobs.spawn_local(self.message(conversation).deliver(self.clone(), worker.clone()));
        if self.chance.second_message() {
            sleep(self.chance.millis(1, 13)).await;
            jobs.spawn_local(self.message(conversation).deliver(self.clone(), worker));
        }
        while jobs.join_next().await.is_some() {}
    }

    fn message(&self, conversation: u32) -> Job {
        self.inbound.borrow_mut()[conversation as usize] += 1;
        let message = self.inbound.borrow()[conversation as usize];
        Job { conversation, message, read: self.read(conversation), read_at: Instant::now() }
    }

    fn told(&self) -> Side {
        let (mut messages, mut duplicates, mut unanswered) = (0, 0, 0);
        for (conversation, inbound) in (0..).zip(self.inbound.borrow().iter()) {
            for message in 1..=*inbound {
                let answers = self.provider.log.answers(conversation, message);
                messages += 1;
                duplicates += answers.saturating_sub(1);
                unanswered += usize::from(answers == 0);
            }
        }
        Side {
            messages,
            replies: self.provider.log.replies(),
            duplicates,
            unanswered,
            faults: self.chance.faults(),
        }
    }
}

impl Job {
    /// Delivers a job until a worker has done it: again when its worker died, and sometimes again for no reason.
    async fn deliver<W, F>(self, world: World, worker: W)
    where
        W: Fn(World, Job, bool) -> F + Clone + 'static,
        F: Future<Output = ()> + 'static,
    {
        match world.chance.delivery() {
            Delivery::Fine => worker(world, self, false).await,
            Delivery::Duplicate => {
                let mut both = JoinSet::new();
                both.spawn_local(worker(world.clone(), self.clone(), false));
                sleep(world.chance.millis(0, 8)).await;
                both.spawn_local(worker(world, self, false));
                while both.join_next().await.is_some() {}
            }
            Delivery::WorkerCrash => {
                // A worker that is to die may have nothing to send, and then lives.
                let again = world.chance.millis(60, 120);
                let mut first = JoinSet::new();
                first.spawn_local(worker(world.clone(), self.clone(), true));
                tokio::select! {
                    biased;
                    _ = first.join_next() => return,
                    () = sleep(again.max(Duration::from_millis(60))) => {}
                }
                let conversation = self.conversation;
                worker(world.clone(), self, false).await;
                // The first may have come to the store last, and so have fenced the second: then it is the one to answer.
                let patience = Instant::now() + agent::PATIENCE;
                while !world.read(conversation).unanswered.is_empty() && Instant::now() < patience {
                    tokio::select! {
                        biased;
                        _ = first.join_next() => break,
                        () = sleep(Duration::from_millis(5)) => {}
                    }
                }
                first.abort_all();
            }
        }
    }
}
