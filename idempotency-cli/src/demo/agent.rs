//! The two agents: the same work, without a ledger and with one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotency_agent::{
    EffectContext, EffectError, InDoubt, Ledger, Outcome, Policy, Reconciled, Refusal,
    ledger::{Conflicts, Status},
};
use idempotency_core::{LedgerStore, Sheets, StoreError, clock::Timestamp};
use tokio::time::{Instant, sleep};

use super::{
    provider::Sent,
    store::Reached,
    world::{Snapshot, World},
};

/// How often the agent without a ledger tries.
const TRIES: u32 = 5;

/// After how long the agent with one gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// A message that is to be answered, and what was known when it arrived.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) conversation: u32,
    pub(super) message: u32,
    pub(super) read: Snapshot,
    pub(super) read_at: Instant,
}

pub(super) async fn unguarded(world: World, job: Job, crashes: bool) {
    sleep(world.chance.millis(2, 12)).await;
    if job.read.unanswered.is_empty() {
        return;
    }
    for _ in 0..TRIES {
        let reply = Sent { conversation: job.conversation, messages: job.read.unanswered.clone(), key: None };
        if world.provider.send(reply).await.is_ok() {
            if crashes {
                world.chance.count("workerCrash");
                std::future::pending::<()>().await;
            }
            return;
        }
    }
}

/// A store's clock as this process reckons it, without asking again.
#[derive(Clone, Copy)]
pub(super) struct StoreTime {
    then: Timestamp,
    at: Instant,
}

impl StoreTime {
    /// Asks once, for all jobs: what each would reckon by an answer of its own, an answer that took long could set back
    /// behind an older job's. Late by the answer's way, it never says that more was read than was.
    pub(super) async fn of(store: &impl LedgerStore, names: &str) -> Result<Self, StoreError> {
        let (_, then) = store.read(&format!("{names}time"), Sheets::Named(&[])).await?;
        Ok(Self { then, at: Instant::now() })
    }

    fn reckon(self, at: Instant) -> Timestamp {
        self.then.plus(at.saturating_duration_since(self.at))
    }
}

pub(super) async fn guarded<S: LedgerStore>(
    world: World,
    job: Job,
    crashes: bool,
    store: Arc<S>,
    time: StoreTime,
) {
    let is_dead = Arc::new(AtomicBool::new(false));
    let scope = format!("{}conversation {}", world.names, job.conversation);
    let policy = Policy::new().pending(Duration::from_secs(2)).max_attempts(6).lease(Duration::from_secs(5));
    let reached = Reached { store, is_dead: Arc::clone(&is_dead) };
    let Ok(ledger) = Ledger::builder(reached).policy(policy).build() else { return };
    let patience = Instant::now() + PATIENCE;
    let id = format!("job {} {}", job.conversation, job.message);
    let run = loop {
        match ledger.run(scope.clone()).id(&id).context_at(time.reckon(job.read_at)).begin().await {
            Ok(run) => break run,
            // A job that found no store is delivered again.
            Err(_) if Instant::now() < patience => sleep(Duration::from_millis(25)).await,
            Err(_) => return,
        }
    };
    let worker = Worker { world, conversation: job.conversation, crashes, is_dead };
    sleep(worker.world.chance.millis(2, 12)).await;
    let mut read = job.read;
    while run.can_write() && Instant::now() < patience && !read.unanswered.is_empty() {
        match worker.reply(&run, read.unanswered.clone()).await {
            Some(Outcome::Executed { .. } | Outcome::Replayed(())) => break,
            Some(Outcome::Refused(Refusal::ConversationChanged(conflicts))) => {
                sleep(Duration::from_millis(if has_pending(&conflicts) { 25 } else { 5 })).await;
                read = worker.world.read(job.conversation);
            }
            Some(Outcome::Refused(_)) => return,
            Some(Outcome::InFlight(_) | Outcome::Ambiguous { .. } | Outcome::Failed { .. }) | None => {
                sleep(Duration::from_millis(5)).await;
            }
        }
    }
    let _ = run.end("completed").await; // a run that is not ended is only redelivered
}

fn has_pending(conflicts: &Conflicts) -> bool {
    conflicts.listed.iter().any(|conflict| conflict.status == Status::Pending)
}

struct Worker {
    world: World,
    conversation: u32,
    crashes: bool,
    is_dead: Arc<AtomicBool>,
}

impl Worker {
    async fn reply<S: LedgerStore>(
        &self,
        run: &idempotency_agent::Run<S>,
        messages: Vec<u32>,
    ) -> Option<Outcome<()>> {
        let ask = run.effect("reply").identity(&messages).wait(Duration::from_secs(5));
        let log = self.world.provider.log.clone();
        let find = move |question: InDoubt| {
            let was_sent = log.knows(question.provider_key.as_str());
            async move { Ok(if was_sent { Reconciled::Committed(None) } else { Reconciled::NotApplied }) }
        };
        let outcome = ask.reconciler(find).execute(|fx| self.send(fx, messages)).await;
        outcome.ok()
    }

    async fn send(&self, fx: EffectContext, messages: Vec<u32>) -> Result<(), EffectError> {
        let key = Some(fx.idempotency_key().as_str().to_owned());
        self.world.provider.send(Sent { conversation: self.conversation, messages, key }).await?;
        if self.crashes {
            self.world.chance.count("workerCrash");
            self.is_dead.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}
