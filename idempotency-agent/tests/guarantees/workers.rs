//! Workers that try, fail and die.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use idempotency_agent::{
    EffectBuilder, EffectContext, EffectError, InDoubt, Ledger, Outcome, Policy, Reconciled, Refusal, Run,
};
use idempotency_core::{Folio, LedgerLayout, LedgerStore, Motion, Sheets, StoreError, clock::Timestamp};
use tokio::{task::JoinSet, time::sleep};

use crate::witness::{Known, Tally, Witness};

const WORKERS: u64 = 6;
const STEPS: u32 = 8;

/// A store as one worker reaches it: once it is dead, nothing it asks for is answered or done.
struct Reached<S> {
    store: Arc<S>,
    is_dead: Arc<AtomicBool>,
}

impl<S> Reached<S> {
    async fn unless_dead(&self) {
        if self.is_dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }
}

impl<S: LedgerStore> LedgerStore for Reached<S> {
    fn layout(&self) -> LedgerLayout {
        self.store.layout()
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        self.unless_dead().await;
        self.store.transact(scope, sheets, law).await
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        self.unless_dead().await;
        self.store.read(scope, sheets).await
    }

    async fn forget(&self, idle: Duration, at_most: u32) -> Result<u32, StoreError> {
        self.store.forget(idle, at_most).await
    }
}

/// Has six workers do what `seed` says in one scope, and checks every step.
pub(crate) async fn schedule<S: LedgerStore>(store: Arc<S>, scope: &str, seed: u64, policy: Policy) -> Tally {
    let witness = Witness::new(format!("seed {seed}"));
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let is_dead = Arc::new(AtomicBool::new(false));
        let reached = Reached { store: Arc::clone(&store), is_dead: Arc::clone(&is_dead) };
        let ledger = Ledger::builder(reached).policy(policy).build().unwrap();
        let rng = Rng::with_seed(seed * 1_000 + number);
        let worker = Worker { ledger, scope: scope.to_owned(), witness: witness.clone(), is_dead, rng };
        workers.spawn(worker.work());
    }
    while let Some(worker) = workers.join_next().await {
        if let Err(error) = worker {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    witness.told()
}

struct Worker<S> {
    ledger: Ledger<Reached<S>>,
    scope: String,
    witness: Witness,
    is_dead: Arc<AtomicBool>,
    rng: Rng,
}

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Happens,
    HappensAndIsLost,
    IsLost,
    IsRefused,
    CrashesBefore,
    CrashesAfter,
}

impl<S: LedgerStore> Worker<S> {
    async fn work(mut self) {
        for _ in 0..STEPS {
            if self.is_dead.load(Ordering::SeqCst) {
                self.witness.tally(|tally| tally.crashed += 1);
                return;
            }
            sleep(Duration::from_millis(self.rng.u64(..20))).await;
            match self.rng.u8(..4) {
                0 => {
                    let ask = self.ledger.effect(&self.scope, "tag").identity(&self.rng.u8(..4));
                    self.ask(ask, None).await;
                }
                _ => self.run().await,
            }
        }
    }

    async fn run(&mut self) {
        let id = format!("job {}", self.rng.u8(..4));
        let builder = self.ledger.run(&self.scope).id(&id);
        let builder = if self.rng.u8(..) < 50 { builder.exclusive() } else { builder };
        let run = builder.begin().await.unwrap();
        let mut seen = self.witness.length();
        if let Some(token) = run.token().filter(|_| run.can_write()) {
            self.witness.token(&id, token);
        }
        for _ in 0..self.rng.u8(1..4) {
            let ask = run.effect("reply").identity(&self.rng.u8(..5));
            if self.ask(ask, Some((&run, seen))).await {
                seen = self.witness.length();
            }
            if self.is_dead.load(Ordering::SeqCst) {
                return;
            }
            sleep(Duration::from_millis(self.rng.u64(..15))).await;
        }
        if self.rng.bool() {
            run.end("completed").await.unwrap();
        }
    }

    /// Asks for an effect, and says whether the run has now seen what others wrote.
    async fn ask(&mut self, ask: EffectBuilder<Reached<S>>, run: Option<(&Run<Reached<S>>, usize)>) -> bool {
        let key = ask.key().unwrap().as_str().to_owned();
        let ask = ask.wait(Duration::from_millis(if self.rng.bool() { 50 } else { 0 }));
        let ask = match self.rng.bool() {
            true => ask.reconciler(self.reconciler(key.clone())),
            false => ask,
        };
        let fates = [
            Fate::Happens,
            Fate::Happens,
            Fate::Happens,
            Fate::HappensAndIsLost,
            Fate::IsLost,
            Fate::IsRefused,
        ];
        let crashes = [Fate::CrashesBefore, Fate::CrashesAfter];
        let fate =
            if self.rng.u8(..) < 20 { self.rng.choice(crashes) } else { self.rng.choice(fates) }.unwrap();
        let pause = Duration::from_millis(self.rng.u64(1..8));
        let was_fenced =
            run.is_some_and(|(run, _)| self.witness.is_fenced(run.id(), run.token().unwrap_or(0)));
        let known = self.witness.length();
        let (witness, is_dead, named) = (self.witness.clone(), Arc::clone(&self.is_dead), key.clone());
        let by = run.and_then(|(run, _)| Some((run.id().to_owned(), run.token()?)));
        let doing = ask.execute(move |_: EffectContext| attempt(witness, is_dead, named, fate, pause));
        let dies = self.is_dead.clone();
        let outcome = tokio::select! {
            biased;
            outcome = doing => outcome.unwrap(),
            () = death(dies) => return false,
        };
        self.notice(&key, &outcome, by);
        match (&outcome, run) {
            (Outcome::Executed { .. }, Some((run, seen))) => {
                self.witness.wrote(run.id(), run.token().unwrap_or(0), seen, known, was_fenced);
                false
            }
            (Outcome::Refused(Refusal::ConversationChanged(_)), _) => true,
            _ => false,
        }
    }

    fn notice(&self, key: &str, outcome: &Outcome<u8>, by: Option<(String, u64)>) {
        match outcome {
            Outcome::Executed { late, .. } => {
                assert!(!late, "{key} was given up while it ran");
                self.witness.is_done(key);
                self.witness.commits(by);
                self.witness.tally(|tally| tally.executed += 1);
            }
            Outcome::Replayed(_) => {
                self.witness.is_done(key);
                self.witness.tally(|tally| tally.replayed += 1);
            }
            Outcome::Ambiguous { error: Some(_), .. } => self.witness.tally(|tally| tally.lost += 1),
            Outcome::Failed { .. } => self.witness.tally(|tally| tally.refused += 1),
            Outcome::Refused(Refusal::ConversationChanged(conflicts)) => {
                assert!(conflicts.total > 0);
                self.witness.tally(|tally| tally.conversation_changed += 1);
            }
            Outcome::Refused(Refusal::Superseded) => self.witness.tally(|tally| tally.fenced += 1),
            Outcome::Ambiguous { error: None, .. } | Outcome::InFlight(_) | Outcome::Refused(_) => {}
        }
    }

    fn reconciler(&self, key: String) -> impl idempotency_agent::Reconciler + use<S> {
        let witness = self.witness.clone();
        move |_: InDoubt| {
            let found = match witness.find_out(&key) {
                true => Reconciled::Committed(idempotency_agent::json::Raw::of(&1).ok()),
                false => Reconciled::NotApplied,
            };
            async move { Ok::<_, Box<dyn Error + Send + Sync>>(found) }
        }
    }
}

/// Comes when the worker has died.
async fn death(is_dead: Arc<AtomicBool>) {
    while !is_dead.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(5)).await;
    }
}

async fn attempt(
    witness: Witness,
    is_dead: Arc<AtomicBool>,
    key: String,
    fate: Fate,
    pause: Duration,
) -> Result<u8, EffectError> {
    witness.begins(&key);
    sleep(pause).await;
    if matches!(fate, Fate::Happens | Fate::HappensAndIsLost | Fate::CrashesAfter) {
        witness.happens(&key);
    }
    match fate {
        Fate::Happens => {
            witness.ends(&key, Known::Yes);
            Ok(1)
        }
        Fate::IsRefused => {
            witness.ends(&key, Known::Yes);
            Err(EffectError::not_applied("refused"))
        }
        Fate::HappensAndIsLost | Fate::IsLost => {
            witness.ends(&key, Known::No);
            Err(EffectError::unknown("lost"))
        }
        Fate::CrashesBefore | Fate::CrashesAfter => {
            witness.ends(&key, Known::No);
            is_dead.store(true, Ordering::SeqCst);
            std::future::pending().await
        }
    }
}
