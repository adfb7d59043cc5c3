//! An attempt: from the right to it to its record.

use std::{future::Future, sync::Arc, time::Duration};

use idempotency_core::LedgerStore;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    EffectBuilder, EffectContext,
    admission::{Admission, Request},
    context::Point,
};
use crate::{
    Applied, EffectError, EffectKey, Ledger, LedgerError, LedgerScope, Outcome, classify,
    desk::Needs,
    event::EventKind,
    ledger::{self, Effect, Number, Pass, Raw, Settle, Settled, Verdict},
    policy::after,
};

/// The pauses after a settling that failed. The original lets another 1.6 s pass after the last.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(25), Duration::from_millis(100), Duration::from_millis(400)];

/// Asks for the effect, attempts it if it may, and records how that ended.
pub(super) async fn perform<S, T, E, F, Fut>(
    builder: EffectBuilder<S>,
    effect: F,
) -> Result<Outcome<T>, LedgerError>
where
    S: LedgerStore,
    T: Serialize + DeserializeOwned,
    E: Into<EffectError>,
    F: FnOnce(EffectContext) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let request = Arc::new(Request::new(builder)?);
    let answer = answer(&request, effect).await;
    if let Some(told) = &request.builder.told {
        told.hear(&request.key, &answer);
    }
    answer
}

async fn answer<S, T, E, F, Fut>(request: &Arc<Request<S>>, effect: F) -> Result<Outcome<T>, LedgerError>
where
    S: LedgerStore,
    T: Serialize + DeserializeOwned,
    E: Into<EffectError>,
    F: FnOnce(EffectContext) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let held = match request.admit().await? {
        Admission::Attempt(held) => held,
        Admission::Replayed(entry) => {
            if let Some(bytes) = entry.result_not_kept() {
                return Err(LedgerError::ResultNotKept { bytes });
            }
            let stored = entry.result.unwrap_or_else(Raw::null);
            return stored.parse().map(Outcome::Replayed).map_err(LedgerError::StoredResult);
        }
        Admission::InFlight(entry) => return Ok(Outcome::InFlight(entry)),
        Admission::Ambiguous(entry) => return Ok(Outcome::Ambiguous { entry, error: None }),
        Admission::Refused(refusal) => return Ok(Outcome::Refused(refusal)),
    };
    if let Some(told) = &request.builder.told {
        told.open(&request.key);
    }
    let attempt = held.entry.attempt.as_u64();
    request.tell(EventKind::Claimed { attempt, run_id: request.run_id() });
    let context = held.context();
    let running = effect(context);
    let done = match request.builder.ledger.is_strict() {
        true => running.await.map_err(Into::into),
        // Mended: an attempt that goes on when it was given up would not know of the next one.
        false => match timeout_at(held.deadline, running).await {
            Ok(done) => done.map_err(Into::into),
            Err(late) => Err(EffectError::unknown(late)),
        },
    };
    match done {
        Ok(value) => {
            let result = Raw::of(&value);
            if result.is_err() {
                request.tell(EventKind::UnserializableResult);
            }
            let late = held.commit(result.unwrap_or_else(|_| Raw::null())).await;
            Ok(Outcome::Executed { value, late })
        }
        Err(error) => Ok(held.fail(error).await),
    }
}

/// The right to attempt an effect. Dropped before the attempt was recorded, it has that recorded.
pub(super) struct Held<S: LedgerStore> {
    request: Arc<Request<S>>,
    pub(super) entry: Effect,
    pub(super) deadline: Instant,
    cancelled: CancellationToken,
    point: Point,
    is_recorded: bool,
}

impl<S: LedgerStore> Held<S> {
    /// The attempt `entry`, claimed by a call that was sent at `since`.
    pub(super) fn new(request: Arc<Request<S>>, entry: Effect, since: Instant) -> Self {
        let deadline = after(since, request.builder.ledger.0.policy.pending);
        let point = Point::new(request.builder.marks_point_of_no_return);
        Self { request, entry, deadline, cancelled: CancellationToken::new(), point, is_recorded: false }
    }

    fn context(&self) -> EffectContext {
        let attempt = self.entry.attempt.as_u64();
        let pass = Pass { key: self.entry.key.clone(), attempt_id: self.entry.attempt_id.clone() };
        let request = Arc::clone(&self.request);
        EffectContext {
            scope: self.request.scope.clone(),
            key: self.request.key.clone(),
            intent: self.request.intent.clone(),
            attempt,
            provider_key: self.request.provider_key(attempt),
            token: self.entry.token.map(Number::as_u64),
            deadline: self.deadline,
            cancelled: self.cancelled.clone(),
            point: self.point.clone(),
            pass: Arc::new(move || {
                let (request, pass) = (Arc::clone(&request), pass.clone());
                Box::pin(async move { passed(&request, &pass).await })
            }),
        }
    }

    /// Records that it happened, and says whether that comes late.
    async fn commit(mut self, result: Raw) -> bool {
        let settled = self.settle(Verdict::Committed, Some(result), None).await;
        let attempt = self.entry.attempt.as_u64();
        let counts = matches!(settled, Some(Settled::Settled { .. }));
        if let Some(Settled::Settled { entry, .. }) = &settled
            && let Some(bytes) = entry.result_not_kept()
        {
            self.request.tell(EventKind::ResultNotKept { bytes });
        }
        let in_time = matches!(settled, Some(Settled::Settled { was_abandoned: false, .. }));
        // Mended: the original says that it is committed also where something else stands.
        if counts || (settled.is_some() && self.request.builder.ledger.is_strict()) {
            self.request.tell(EventKind::Committed { attempt, run_id: self.request.run_id() });
        }
        if !in_time {
            self.request.tell(EventKind::LateSettle { attempt });
        }
        !in_time
    }

    /// Records that the attempt failed, and what that says.
    async fn fail<T>(mut self, error: EffectError) -> Outcome<T> {
        let by = self.request.builder.classifier.clone();
        let applied = match self.point.end() {
            true => Applied::No,
            false => classify::applied(&error, by.as_ref()),
        };
        let text = error.record();
        let attempt = self.entry.attempt.as_u64();
        let verdict = match applied {
            Applied::No => Verdict::Failed,
            Applied::Unknown => Verdict::Ambiguous,
        };
        let settled = self.settle(verdict, None, Some(cut(&text))).await;
        let entry = match settled {
            Some(Settled::Settled { entry, .. } | Settled::Stale(Some(entry))) => Some(entry),
            Some(Settled::Stale(None)) | None => None,
        };
        let is_strict = self.request.builder.ledger.is_strict();
        match verdict {
            Verdict::Failed => {
                self.request.tell(EventKind::Failed { attempt, error: text });
                let is_left = attempt < u64::from(self.request.builder.ledger.0.policy.max_attempts);
                let recorded = entry.as_ref().is_some_and(|entry| entry.attempt_id == self.entry.attempt_id);
                // Mended: what is not recorded is in flight to whoever asks next, and so it is to this call.
                match recorded || is_strict {
                    true => Outcome::Failed { error, retryable: is_left },
                    false => Outcome::InFlight(entry.unwrap_or_else(|| self.entry.clone())),
                }
            }
            Verdict::Committed | Verdict::Ambiguous => {
                self.request.tell(EventKind::Ambiguous { error: Some(text) });
                Outcome::Ambiguous { entry: entry.unwrap_or_else(|| self.entry.clone()), error: Some(error) }
            }
        }
    }

    /// Records how the attempt ended, in a task of its own, so that nobody's going away keeps it from that.
    async fn settle(
        &mut self,
        verdict: Verdict,
        result: Option<Raw>,
        error: Option<String>,
    ) -> Option<Settled> {
        let input = Settle {
            key: self.entry.key.clone(),
            attempt_id: self.entry.attempt_id.clone(),
            verdict,
            result,
            error,
        };
        self.is_recorded = true;
        self.cancelled.cancel();
        let (ledger, scope) = (self.request.builder.ledger.clone(), self.request.scope.clone());
        tokio::spawn(async move { settle(&ledger, &scope, &input).await }).await.ok().flatten()
    }
}

impl<S: LedgerStore> Drop for Held<S> {
    fn drop(&mut self) {
        self.cancelled.cancel();
        if self.is_recorded || self.request.builder.ledger.is_strict() {
            return;
        }
        let (verdict, error) = match self.point.end() {
            true => (Verdict::Failed, "Cancelled: before its point of no return"),
            false => (Verdict::Ambiguous, "Cancelled: while it ran"),
        };
        self.request.tell(EventKind::Ambiguous { error: Some(error.to_owned()) });
        record_later(
            &self.request.builder.ledger,
            &self.request.scope,
            Settle {
                key: self.entry.key.clone(),
                attempt_id: self.entry.attempt_id.clone(),
                verdict,
                result: None,
                error: Some(error.to_owned()),
            },
        );
    }
}

/// Has it recorded that an attempt never began.
pub(super) fn give_back<S: LedgerStore>(
    ledger: &Ledger<S>,
    scope: &LedgerScope,
    key: &EffectKey,
    attempt_id: &str,
) {
    record_later(
        ledger,
        scope,
        Settle {
            key: key.as_str().to_owned(),
            attempt_id: attempt_id.to_owned(),
            verdict: Verdict::Failed,
            result: None,
            error: Some("Cancelled: before it began".to_owned()),
        },
    );
}

/// Without a runtime nothing can be recorded: the attempt is given up when its time is over.
fn record_later<S: LedgerStore>(ledger: &Ledger<S>, scope: &LedgerScope, input: Settle) {
    let Ok(runtime) = Handle::try_current() else { return };
    let (ledger, scope) = (ledger.clone(), scope.clone());
    runtime.spawn(async move { settle(&ledger, &scope, &input).await });
}

/// Records, with patience for a store that does not answer. Nothing where it never does.
async fn settle<S: LedgerStore>(ledger: &Ledger<S>, scope: &LedgerScope, input: &Settle) -> Option<Settled> {
    let needs = Needs { key: Some(&input.key), ..Needs::default() };
    let law = |document, now, terms: &_| ledger::settle(document, input, now, terms);
    for pause in PAUSES.into_iter().map(Some).chain([None]) {
        if let Ok(settled) = ledger.0.desk.apply(scope, needs, law).await {
            return Some(settled);
        }
        match pause {
            Some(pause) => sleep(pause).await,
            None if ledger.is_strict() => sleep(Duration::from_millis(1_600)).await,
            None => {}
        }
    }
    None
}

/// Marks the point of no return. What keeps one step of an attempt from it says nothing of the others, so that its error
/// is no word on the effect: the attempt's [`Point`] is.
async fn passed<S: LedgerStore>(request: &Request<S>, pass: &Pass) -> Result<(), EffectError> {
    let needs = Needs { key: Some(&pass.key), ..Needs::default() };
    let law = |document, now, terms: &_| ledger::pass(document, pass, now, terms);
    let desk = &request.builder.ledger.0.desk;
    match desk.apply(&request.scope, needs, law).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => Err(EffectError::unknown(NotLetThrough(reason.name()))),
        Err(error) => Err(EffectError::unknown(error)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("not to be attempted any more: {0}")]
struct NotLetThrough(&'static str);

/// The longest error the original records, in characters. The law cuts once more, for other languages.
fn cut(text: &str) -> String {
    text.chars().take(500).collect()
}
