//! Jobs of a queue: one run for each, however often it is delivered.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use idempotency_core::{LedgerStore, clock::Timestamp};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Ledger, LedgerError, Run, RunBuilder, RunState,
    ledger::{Busy, Effect, Status},
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
    /// A newer run has taken its place: nothing is left to do.
    Superseded,
    /// Another run lives in the scope.
    Busy(Busy),
    /// These effects of an earlier delivery still run.
    InFlight(Vec<Effect>),
    /// Nobody knows whether these effects of it happened. A redelivery finds out only where the ledger has a reconciler.
    InDoubt {
        /// The effects.
        effects: Vec<Effect>,
        /// What its work ended with, where that is how it came to light.
        error: Option<E>,
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
    /// To put it where a person sees it, or to deliver it again if the ledger has a reconciler.
    Park,
}

impl<S: LedgerStore> Ledger<S> {
    /// Takes a delivery of the job `id` of `queue`, which works in `scope`. Its run has the id `queue:id`, so that each
    /// redelivery of it is known as such.
    pub fn job(
        &self,
        scope: impl Into<String>,
        queue: impl fmt::Display,
        id: impl fmt::Display,
    ) -> JobBuilder<S> {
        let run = self.run(scope).id(format!("{queue}:{id}"));
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
    /// the work ends well, and only then, so that a redelivery of what failed is worked on.
    ///
    /// # Errors
    /// [`LedgerError`] when the scope is none or the store fails. To be delivered again: what was done is not done again.
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
            RunState::Superseded => {
                run.end("superseded").await?;
                return Ok(Delivered::Superseded);
            }
        }
        if skips_what_wrote
            && run.already_wrote()
            && let Some(delivered) = of_earlier(&run).await?
        {
            return Ok(delivered);
        }
        let mut signs = JoinSet::new(); // ends with this call
        signs.spawn(give_signs_of_life(Arc::clone(&run), lease));
        match work(Arc::clone(&run)).await {
            Ok(value) => {
                run.end("completed").await?;
                Ok(Delivered::Done(value))
            }
            Err(error) => {
                let effects = with_status(&of_run(&run).await?, Status::Ambiguous);
                Ok(match effects.is_empty() {
                    true => Delivered::Failed(error),
                    false => Delivered::InDoubt { effects, error: Some(error) },
                })
            }
        }
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
            Self::Busy(_) | Self::InFlight(_) => Advice::RetryAfter(LATER),
            Self::Failed(_) => Advice::Retry,
            Self::InDoubt { .. } => Advice::Park,
        }
    }
}

/// What a job is to its queue that an earlier delivery has written for. Nothing yet, where all that it attempted is known
/// not to have happened.
async fn of_earlier<S: LedgerStore, T, E>(run: &Run<S>) -> Result<Option<Delivered<T, E>>, LedgerError> {
    let of_run = of_run(run).await?;
    let found = |status| Some(with_status(&of_run, status)).filter(|effects| !effects.is_empty());
    if let Some(effects) = found(Status::Pending) {
        return Ok(Some(Delivered::InFlight(effects)));
    }
    if let Some(effects) = found(Status::Ambiguous) {
        return Ok(Some(Delivered::InDoubt { effects, error: None }));
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
