//! From asking to an answer or to the right to attempt: claims, waiting, and finding out.

use idempotency_core::{LedgerStore, StoreErrorKind};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};

use super::{EffectBuilder, INTERVAL, attempt::Held};
use crate::{
    EffectKey, InDoubt, LedgerError, LedgerScope, ProviderKey, Reconciled, Refusal,
    desk::{Beyond, Needs},
    event::EventKind,
    ledger::{self, Claim, Claimed, Conflicts, Effect, Reconcile, RefusalReason, Resolution, Status},
    policy::{ProviderKeys, after, millis},
    run::fresh_id,
};

/// How often a call asks, each time with an attempt of another name.
const ROUNDS: u32 = 5;

/// How often a claim whose answer was lost is repeated, and after which pauses.
const REPEATS: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(100)];

/// How long finding out takes at most.
const FINDING: Duration = Duration::from_secs(30);

/// The answer to who asks for an effect.
pub(super) enum Admission<S: LedgerStore> {
    Attempt(Held<S>),
    Replayed(Effect),
    InFlight(Effect),
    Ambiguous(Effect),
    Refused(Refusal),
}

/// What is asked for, checked.
pub(super) struct Request<S> {
    pub(super) builder: EffectBuilder<S>,
    pub(super) scope: LedgerScope,
    pub(super) intent: String,
    pub(super) key: EffectKey,
    payload: Option<String>,
}

impl<S: LedgerStore> Request<S> {
    pub(super) fn new(builder: EffectBuilder<S>) -> Result<Self, LedgerError> {
        let key = builder.key()?;
        let payload = builder.payload_digest()?;
        let (scope, intent) = builder.named.clone()?;
        Ok(Self { builder, scope, intent: intent.as_str().to_owned(), key, payload })
    }

    pub(super) fn tell(&self, kind: EventKind) {
        self.builder.ledger.0.notices.tell(self.scope.as_str(), self.key.as_str(), kind);
    }

    pub(super) fn run_id(&self) -> Option<String> {
        self.builder.asker.as_ref().map(|asker| asker.run_id.clone())
    }

    pub(super) fn provider_key(&self, attempt: u64) -> ProviderKey {
        match self.builder.ledger.0.policy.provider_keys {
            ProviderKeys::PerEffect => self.key.provider_key(&self.scope),
            ProviderKeys::PerAttempt => self.key.provider_key_of_attempt(&self.scope, attempt),
        }
    }

    /// Asks until there is an answer.
    pub(super) async fn admit(self: &Arc<Self>) -> Result<Admission<S>, LedgerError> {
        let deadline = after(Instant::now(), self.builder.wait);
        let mut asked_reconciler = false;
        for _ in 0..ROUNDS {
            match self.claim().await? {
                (Claimed::Acquired(entry), since) => {
                    return Ok(Admission::Attempt(Held::new(Arc::clone(self), entry, since)));
                }
                (Claimed::Replay(entry), _) => {
                    self.tell(EventKind::Replayed);
                    return Ok(Admission::Replayed(entry));
                }
                (Claimed::Refused { reason, conflicts, entry }, _) => {
                    self.tell(EventKind::Refused { reason: Some(reason), run_id: self.run_id() });
                    return Ok(Admission::Refused(refusal(reason, conflicts, entry)));
                }
                (Claimed::InFlight(_), _) if Instant::now() < deadline => self.wait_until(deadline).await?,
                (Claimed::InFlight(entry), _) => {
                    self.tell(EventKind::InFlight);
                    return Ok(Admission::InFlight(entry));
                }
                (Claimed::Ambiguous(entry), _) => {
                    if asked_reconciler || !self.find_out(&entry).await? {
                        self.tell(EventKind::Ambiguous { error: None });
                        return Ok(Admission::Ambiguous(entry));
                    }
                    asked_reconciler = true;
                }
            }
        }
        self.read_instead().await
    }

    /// Claims once, in a task of its own: a claim that was granted to somebody who is gone is given back.
    async fn claim(self: &Arc<Self>) -> Result<(Claimed, Instant), LedgerError> {
        let since = Instant::now();
        let request = Arc::clone(self);
        let attempt_id = fresh_id();
        let claiming = tokio::spawn(async move {
            let claimed = request.claim_repeatedly(attempt_id).await;
            claimed.map(|claimed| Granted::new(request, claimed))
        });
        let granted = claiming.await.map_err(|_| LedgerError::ShutDown)??;
        Ok((granted.take(), since))
    }

    async fn claim_repeatedly(&self, attempt_id: String) -> Result<Claimed, LedgerError> {
        let claim = Claim {
            scope: self.scope.as_str().to_owned(),
            key: self.key.as_str().to_owned(),
            intent: self.intent.clone(),
            summary: self.builder.summary.clone(),
            payload: self.payload.clone(),
            asker: self.builder.asker.clone(),
            attempt_id,
            conflict: self.builder.conflict,
            acknowledges: self.builder.acknowledges,
            lease: millis(self.builder.lease),
            marks_point_of_no_return: self.builder.marks_point_of_no_return,
        };
        let needs = Needs {
            key: Some(&claim.key),
            run: claim.asker.as_ref().map(|asker| asker.run_id.as_str()),
            beyond: match (claim.conflict, &claim.asker) {
                (ledger::ConflictMode::None, _) | (_, None) => Beyond::Nothing,
                _ => Beyond::Unseen,
            },
        };
        let desk = &self.builder.ledger.0.desk;
        let law = |document, now, terms: &_| ledger::claim(document, &claim, now, terms);
        let mut pauses = REPEATS.iter();
        loop {
            let error = match desk.apply(&self.scope, needs, law).await {
                Ok(claimed) => return Ok(claimed),
                Err(error) => error,
            };
            // Mended: the same attempt may ask again, whether the answer was lost or the call.
            let may_repeat =
                matches!(&error, LedgerError::Store(error) if error.kind == StoreErrorKind::Unavailable);
            match pauses.next().filter(|_| may_repeat && !self.builder.ledger.is_strict()) {
                Some(pause) => sleep(*pause).await,
                None => {
                    self.give_back_unless_strict(&claim.attempt_id);
                    return Err(error);
                }
            }
        }
    }

    /// A claim of which nobody knows whether it was granted is given back, whether or not.
    fn give_back_unless_strict(&self, attempt_id: &str) {
        if self.builder.ledger.is_strict() {
            return;
        }
        super::attempt::give_back(&self.builder.ledger, &self.scope, &self.key, attempt_id);
    }

    /// Waits until no attempt runs, or `deadline`.
    async fn wait_until(&self, deadline: Instant) -> Result<(), LedgerError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            sleep(INTERVAL.min(left).max(Duration::from_millis(1))).await;
            let known = self.builder.ledger.check(&self.scope, &self.key).await?;
            if known.status != Some(Status::Pending) || Instant::now() >= deadline {
                return Ok(());
            }
        }
    }

    /// Has the reconciler find out, and says whether the effect is in doubt no longer, or is of another attempt.
    async fn find_out(&self, entry: &Effect) -> Result<bool, LedgerError> {
        let Some(reconciler) = &self.builder.reconciler else { return Ok(false) };
        let ledger = &self.builder.ledger;
        let (key, attempt_id) = (entry.key.clone(), entry.attempt_id.clone());
        let ask = Reconcile { key, attempt_id, lease: millis(FINDING) };
        let needs = Needs { key: Some(&ask.key), ..Needs::default() };
        if !ledger.is_strict() {
            let law = |document, now, terms: &_| ledger::reconcile(document, &ask, now, terms);
            if !ledger.0.desk.apply(&self.scope, needs, law).await? {
                return Ok(false); // somebody else does
            }
        }
        let provider_key = self.provider_key(entry.attempt.as_u64());
        let finding = reconciler.find_out(InDoubt { entry: entry.clone(), provider_key });
        let found = match ledger.is_strict() {
            true => finding.await,
            false => timeout(FINDING, finding).await.unwrap_or(Ok(Reconciled::Unknown)),
        };
        let (resolution, result) = match found {
            Ok(Reconciled::Committed(result)) => (Resolution::Committed, result),
            Ok(Reconciled::NotApplied) => (Resolution::NotApplied, None),
            Ok(Reconciled::Unknown) | Err(_) => {
                if !ledger.is_strict() {
                    let law =
                        |document, now, terms: &_| ledger::give_up_reconciling(document, &ask, now, terms);
                    ledger.0.desk.apply(&self.scope, needs, law).await?;
                }
                return Ok(false);
            }
        };
        ledger.resolve(&self.scope, &self.key, resolution, result, Some(&entry.attempt_id)).await?;
        Ok(true)
    }

    /// What stands there after all rounds.
    async fn read_instead(&self) -> Result<Admission<S>, LedgerError> {
        let known = self.builder.ledger.check(&self.scope, &self.key).await?;
        let (Some(entry), Some(status)) = (known.entry, known.status) else {
            return Err(LedgerError::Restless);
        };
        Ok(match status {
            Status::Committed => Admission::Replayed(entry),
            // Mended: the original calls these two in flight as well.
            Status::Ambiguous if !self.builder.ledger.is_strict() => Admission::Ambiguous(entry),
            Status::Failed if !self.builder.ledger.is_strict() => {
                Admission::Refused(Refusal::Exhausted(entry))
            }
            Status::Pending | Status::Ambiguous | Status::Failed => Admission::InFlight(entry),
        })
    }
}

fn refusal(reason: RefusalReason, conflicts: Conflicts, entry: Option<Effect>) -> Refusal {
    match (reason, entry) {
        (RefusalReason::Superseded, _) => Refusal::Superseded,
        (RefusalReason::RunCancelled, _) => Refusal::RunCancelled,
        (RefusalReason::RunEnded, _) => Refusal::RunEnded,
        (RefusalReason::ConversationChanged, _) => Refusal::ConversationChanged(conflicts),
        (RefusalReason::Exhausted, Some(entry)) => Refusal::Exhausted(entry),
        (RefusalReason::KeyTaken, Some(entry)) => Refusal::KeyTaken(entry),
        (RefusalReason::PayloadChanged, Some(entry)) => Refusal::PayloadChanged(entry),
        (
            RefusalReason::UnknownRun
            | RefusalReason::Exhausted
            | RefusalReason::KeyTaken
            | RefusalReason::PayloadChanged,
            _,
        ) => Refusal::UnknownRun,
    }
}

/// A claim's answer on its way to who asked.
struct Granted<S: LedgerStore> {
    request: Arc<Request<S>>,
    claimed: Option<Claimed>,
}

impl<S: LedgerStore> Granted<S> {
    const fn new(request: Arc<Request<S>>, claimed: Claimed) -> Self {
        Self { request, claimed: Some(claimed) }
    }

    fn take(mut self) -> Claimed {
        self.claimed.take().unwrap_or_else(|| unreachable!("it is taken once"))
    }
}

impl<S: LedgerStore> Drop for Granted<S> {
    fn drop(&mut self) {
        if let Some(Claimed::Acquired(entry)) = &self.claimed {
            self.request.give_back_unless_strict(&entry.attempt_id);
        }
    }
}
