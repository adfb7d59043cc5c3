//! Jobs of a queue: one run for each, however often it is delivered.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use idempotency_core::{LedgerStore, clock::Timestamp};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    EffectKey, Ledger, LedgerError, NameError, Run, RunBuilder, RunState,
    ledger::{Busy, Effect, Status, Superseder},
    told::Word,
};

/// When a delivery is worth another look while somebody else is at it.
const LATER: Duration = Duration::from_secs(5);

/// A delivery of a job, and how it is to be worked on.
#[must_use]
pub struct JobBuilder<S> {
    run: RunBuilder<S>,
    lease: Duration,
    skips_what_wrote: bool,
}

/// What became of a delivery.
#[derive(Debug)]
#[must_use]
pub enum Delivered<T, E> {
    /// It was worked on to its end.
    Done(T),
    /// An earlier delivery was, or the job was withdrawn.
    AlreadyDone,
    /// It was worked on to its end, and a later delivery has taken its place meanwhile: that one may still be at it.
    Overtaken(T),
    /// A newer run has taken its place and did something, or may have: nothing is left to do.
    Superseded,
    /// Another run lives in the scope, or a newer one that did nothing yet.
    Busy(Busy),
    /// These effects that it needs still run, or their ends could not be recorded.
    InFlight {
        /// The effects.
        effects: Vec<Effect>,
        /// What its work ended with, where that is how it came to light.
        error: Option<E>,
    },
    /// Nobody knows whether these effects that it needs happened. A redelivery finds out only where the ledger has a
    /// reconciler.
    InDoubt {
        /// The effects.
        effects: Vec<Effect>,
        /// What its work ended with, where that is how it came to light.
        error: Option<E>,
    },
    /// Its work failed, and these effects come to nothing else however often they are asked for: they failed as often as
    /// they may, their keys are bound to something else, or what they came to cannot be read any more.
    Hopeless {
        /// What stands under their keys.
        effects: Vec<Effect>,
        /// What its work ended with.
        error: E,
    },
    /// Its work failed. A redelivery takes it up again: what it did is not done again.
    Failed(E),
}

/// What to tell the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// That it is done with.
    Acknowledge,
    /// To deliver it again, not before this time is over.
    RetryAfter(Duration),
    /// To deliver it again, when the queue sees fit.
    Retry,
    /// To put it where a person sees it: delivered again as things stand, it ends so again. Where the ledger has a
    /// reconciler, each redelivery asks that once.
    Park,
}

impl<S: LedgerStore> Ledger<S> {
    /// Takes a delivery of the job `id` of `queue`, which works in `scope`. Its run has the id `queue:id`, so that each
    /// redelivery of it is known as such; a `:` or `%` in the queue's name is written `%3A` or `%25` there. An empty id is
    /// refused when it is worked on.
    ///
    /// Once a newer job of the scope did something, an older one is superseded: it is acknowledged without having been
    /// worked on. Where each is to be done, make them [`exclusive`](JobBuilder::exclusive).
    pub fn job(
        &self,
        scope: impl Into<String>,
        queue: impl fmt::Display,
        id: impl fmt::Display,
    ) -> JobBuilder<S> {
        let queue = queue.to_string().replace('%', "%25").replace(':', "%3A");
        let id = id.to_string();
        let run = match id.is_empty() {
            true => self.run(scope).refused(NameError::EmptyId),
            false => self.run(scope).id(format!("{queue}:{id}")),
        };
        JobBuilder { run, lease: self.0.policy.lease, skips_what_wrote: false }
    }
}

impl<S: LedgerStore> JobBuilder<S> {
    /// Works only while no other run lives in the scope.
    pub fn exclusive(self) -> Self {
        Self { run: self.run.exclusive(), ..self }
    }

    /// What the job knows of the conversation was read at `read_at`. Without it, its work reads for itself.
    pub fn context_at(self, read_at: Timestamp) -> Self {
        Self { run: self.run.context_at(read_at), ..self }
    }

    /// How long its run lives without a sign of life, which is given for it three times as often: the policy's lease unless
    /// set.
    pub fn lease(self, lease: Duration) -> Self {
        Self { run: self.run.lease(lease), lease, ..self }
    }

    /// Takes a job for done once an effect of an earlier delivery happened: for jobs whose work is that one effect. Others
    /// are taken up again, and do what is left.
    pub fn skip_if_it_wrote(self) -> Self {
        Self { skips_what_wrote: true, ..self }
    }

    /// Works on the job unless that is done or somebody is at it, and says what to tell the queue. The run is ended when
    /// the work ends well and none of its effects runs or is in doubt, and only then, so that a redelivery of what failed is
    /// worked on. The work ends well only if what it asked for is done: an outcome that is not is to become its error.
    ///
    /// # Errors
    /// [`LedgerError`] when the scope or the id is none or the store fails. To be delivered again: what was done is not done again.
    pub async fn work<T, E, F, Fut>(self, work: F) -> Result<Delivered<T, E>, LedgerError>
    where
        F: FnOnce(Arc<Run<S>>) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let (lease, skips_what_wrote) = (self.lease, self.skips_what_wrote);
        let run = Arc::new(self.run.begin().await?);
        match run.state() {
            RunState::New | RunState::Resumed => {}
            RunState::Ended => return Ok(Delivered::AlreadyDone),
            RunState::Busy(holder) => return Ok(Delivered::Busy(holder.clone())),
            RunState::Superseded => return superseded(&run).await,
        }
        if skips_what_wrote
            && run.already_wrote()
            && let Some(delivered) = of_earlier(&run).await?
        {
            return Ok(delivered);
        }
        let mut signs = JoinSet::new(); // ends with this call
        signs.spawn(give_signs_of_life(Arc::clone(&run), lease));
        let worked = work(Arc::clone(&run)).await;
        let Undone { in_flight, in_doubt, hopeless } = undone(&run, worked.is_err()).await?;
        if !in_flight.is_empty() {
            return Ok(Delivered::InFlight { effects: in_flight, error: worked.err() });
        }
        if !in_doubt.is_empty() {
            return Ok(Delivered::InDoubt { effects: in_doubt, error: worked.err() });
        }
        Ok(match worked {
            Err(error) if hopeless.is_empty() => Delivered::Failed(error),
            Err(error) => Delivered::Hopeless { effects: hopeless, error },
            Ok(value) if run.end("completed").await? => Delivered::Done(value),
            Ok(value) => Delivered::Overtaken(value),
        })
    }
}

impl<S> fmt::Debug for JobBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobBuilder")
            .field("run", &self.run)
            .field("skips_what_wrote", &self.skips_what_wrote)
            .finish_non_exhaustive()
    }
}

impl<T, E> Delivered<T, E> {
    /// What to tell the queue.
    pub const fn advice(&self) -> Advice {
        match self {
            Self::Done(_) | Self::AlreadyDone | Self::Superseded => Advice::Acknowledge,
            Self::Overtaken(_) | Self::Busy(_) | Self::InFlight { .. } => Advice::RetryAfter(LATER),
            Self::Failed(_) => Advice::Retry,
            Self::InDoubt { .. } | Self::Hopeless { .. } => Advice::Park,
        }
    }
}

/// What a job is to its queue whose place a newer run has taken. One that did nothing yet may come to nothing.
async fn superseded<S: LedgerStore, T, E>(run: &Run<S>) -> Result<Delivered<T, E>, LedgerError> {
    match run.superseder().await? {
        Some(Superseder::Lives(newer)) => Ok(Delivered::Busy(newer)),
        Some(Superseder::Landed) => {
            run.end("superseded").await?;
            Ok(Delivered::Superseded)
        }
        None => Err(LedgerError::Restless), // it was forgotten between the two looks
    }
}

/// The effects that a job needs and that are not done.
#[derive(Default)]
struct Undone {
    in_flight: Vec<Effect>,
    in_doubt: Vec<Effect>,
    hopeless: Vec<Effect>,
}

/// What is left of the effects that this delivery asked for, and of those of earlier ones that it did not come to. What was
/// answered as done is done, even where that could not be recorded.
async fn undone<S: LedgerStore>(run: &Run<S>, has_failed: bool) -> Result<Undone, LedgerError> {
    let prior = run.prior().iter().filter(|effect| !effect.is_settled());
    let prior = prior.map(|effect| EffectKey::plain(effect.key.clone()));
    let untold: Vec<_> = prior.filter(|key| run.told().of(key).is_none()).collect();
    // The redelivery of what failed before it asked has the reconciler asked.
    let finds_out = has_failed && run.ledger().0.reconciler.is_some();
    let mut undone = Undone::default();
    for key in run.told().all(Word::Open).iter().chain(&untold) {
        let known = run.check(key).await?;
        match known.status {
            Some(Status::Pending) => undone.in_flight.extend(known.entry),
            Some(Status::Ambiguous) if !(finds_out && untold.contains(key)) => {
                undone.in_doubt.extend(known.entry);
            }
            _ => {}
        }
    }
    for key in run.told().all(Word::Hopeless) {
        undone.hopeless.extend(run.check(&key).await?.entry);
    }
    Ok(undone)
}

/// What a job is to its queue that an earlier delivery has written for. Nothing yet, where all that it attempted is known
/// not to have happened, or where its work has the reconciler asked.
async fn of_earlier<S: LedgerStore, T, E>(run: &Run<S>) -> Result<Option<Delivered<T, E>>, LedgerError> {
    let of_run = of_run(run).await?;
    let found = |status| Some(with_status(&of_run, status)).filter(|effects| !effects.is_empty());
    if let Some(effects) = found(Status::Pending) {
        return Ok(Some(Delivered::InFlight { effects, error: None }));
    }
    if let Some(effects) = found(Status::Ambiguous) {
        let in_doubt = Delivered::InDoubt { effects, error: None };
        return Ok(run.ledger().0.reconciler.is_none().then_some(in_doubt));
    }
    if found(Status::Committed).is_none() {
        return Ok(None);
    }
    run.end("completed").await?;
    Ok(Some(Delivered::AlreadyDone))
}

fn with_status(effects: &[(Effect, Status)], status: Status) -> Vec<Effect> {
    effects.iter().filter(|(_, found)| *found == status).map(|(effect, _)| effect.clone()).collect()
}

/// Every effect of the run, with where it is now.
async fn of_run<S: LedgerStore>(run: &Run<S>) -> Result<Vec<(Effect, Status)>, LedgerError> {
    let mut effects = run.ledger().history(run.scope()).await?;
    effects.retain(|(effect, _)| effect.run_id.as_deref() == Some(run.id()));
    Ok(effects)
}

/// Says that the run lives, again and again, until it may write no more: which its next effect finds out as well. A store
/// that fails is asked again.
async fn give_signs_of_life<S: LedgerStore>(run: Arc<Run<S>>, lease: Duration) {
    let pause = (lease / 3).max(Duration::from_millis(1));
    loop {
        sleep(pause).await;
        if let Ok(false) = run.heartbeat().await {
            return;
        }
    }
}
