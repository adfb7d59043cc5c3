//! Asking for the right to attempt an effect.
//!
//! What stands under the key is looked at before the run that asks: whoever asks for what is done is told so.

use super::{
    ABANDONED, ConflictMode, Conflicts, Document, DocumentError, Effect, Number, Status, Step, Terms,
    conflict::conflicts,
    document::Kept,
    effect::{self, Sent},
};
use crate::json::Members;

/// What a worker brings to attempt an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The scope, which the entry names.
    pub scope: String,
    /// The effect's key.
    pub key: String,
    /// Its intent.
    pub intent: String,
    /// What it does, in words.
    pub summary: Option<String>,
    /// The digest of all it is asked to do, where askers with the same key may differ in that.
    pub payload: Option<String>,
    /// The run that asks; none outside of runs.
    pub asker: Option<Asker>,
    /// The name of this attempt, drawn before the call and the same however often the call is repeated.
    pub attempt_id: String,
    /// Which effects of others stand in its way.
    pub conflict: ConflictMode,
    /// Whether being told of others' effects counts as having seen them.
    pub acknowledges: bool,
    /// How long the run lives from now on, in milliseconds.
    pub lease: Number,
    /// Whether the attempt will mark its point of no return: see [`pass`](super::pass).
    pub marks_point_of_no_return: bool,
}

/// The run that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Its id.
    pub run_id: String,
    /// The token its delivery was given; none asks for the run whatever its token.
    pub token: Option<Number>,
}

/// The answer to a [`Claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Attempt it now.
    Acquired(Effect),
    /// It is done.
    Replay(Effect),
    /// Another attempt runs.
    InFlight(Effect),
    /// Nobody knows whether it is done.
    Ambiguous(Effect),
    /// Not to be attempted.
    Refused {
        /// Why.
        reason: RefusalReason,
        /// What others did, where that is the reason.
        conflicts: Conflicts,
        /// What stands under the key, where that is the reason.
        entry: Option<Effect>,
    },
}

/// Why an effect is not to be attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// It failed as often as it may.
    Exhausted,
    /// There is no such run, or none any more.
    UnknownRun,
    /// The run was withdrawn.
    RunCancelled,
    /// The run ended.
    RunEnded,
    /// A newer run or a later delivery has taken the run's place.
    Superseded,
    /// Others wrote since the run looked.
    ConversationChanged,
    /// The key is taken by an effect of another intent. In the original that one's result would be answered.
    KeyTaken,
    /// The key's effect was asked for with another payload, and happened, or may have.
    PayloadChanged,
}

impl RefusalReason {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::UnknownRun => "unknown_run",
            Self::RunCancelled => "run_cancelled",
            Self::RunEnded => "run_ended",
            Self::Superseded => "superseded",
            Self::ConversationChanged => "conversation_changed",
            Self::KeyTaken => "key_taken",
            Self::PayloadChanged => "payload_changed",
        }
    }
}

impl Claimed {
    const fn refused(reason: RefusalReason) -> Self {
        Self::Refused { reason, conflicts: Conflicts { listed: Vec::new(), total: 0 }, entry: None }
    }

    const fn refused_for(reason: RefusalReason, entry: Effect) -> Self {
        Self::Refused { reason, conflicts: Conflicts { listed: Vec::new(), total: 0 }, entry: Some(entry) }
    }
}

/// Asks for the right to attempt an effect.
///
/// # Errors
/// [`DocumentError`] when the document, or what stands under the key, cannot be worked with.
pub fn claim(
    document: Document,
    input: &Claim,
    now: Number,
    terms: &Terms,
) -> Result<Step<Claimed>, DocumentError> {
    let document = document.load(terms, now)?;
    let prior = match document.effects.get(&input.key) {
        None => None,
        Some(kept) => {
            let unreadable = || DocumentError::UnreadableEntry(input.key.clone());
            Some(kept.get().cloned().ok_or_else(unreadable)?)
        }
    };
    match prior.as_ref().map(|prior| of_prior(prior, input, now, terms)) {
        Some(Prior::Answers(claimed)) => Ok(Step::unchanged(claimed)),
        Some(Prior::Abandoned) => Ok(abandon(document, &input.key, terms)),
        Some(Prior::MayBeRetried) | None => Ok(ask_for_run(document, prior.as_ref(), input, now, terms)),
    }
}

/// What an entry means to who asks for its key.
#[expect(clippy::large_enum_variant, reason = "there is one for each call")]
enum Prior {
    Answers(Claimed),
    Abandoned,
    MayBeRetried,
}

fn of_prior(prior: &Effect, input: &Claim, now: Number, terms: &Terms) -> Prior {
    let entry = || prior.clone();
    // Mended: a text of the caller's own and an intent without an identity share their keys.
    if !terms.is_strict() && prior.intent != input.intent {
        return Prior::Answers(Claimed::refused_for(RefusalReason::KeyTaken, entry()));
    }
    let status = prior.effective_status(now, terms);
    // What did not happen leaves its key to any payload. The original knows of none.
    let is_bound = !terms.is_strict() && status != Status::Failed;
    if is_bound && prior.has_other_payload(input.payload.as_deref()) {
        return Prior::Answers(Claimed::refused_for(RefusalReason::PayloadChanged, entry()));
    }
    match status {
        Status::Committed => Prior::Answers(Claimed::Replay(entry())),
        // Mended: the answer to this very claim was lost.
        Status::Pending if !terms.is_strict() && prior.attempt_id == input.attempt_id => {
            Prior::Answers(Claimed::Acquired(entry()))
        }
        Status::Pending => Prior::Answers(Claimed::InFlight(entry())),
        Status::Ambiguous if prior.status == Status::Pending => Prior::Abandoned,
        Status::Ambiguous => Prior::Answers(Claimed::Ambiguous(entry())),
        Status::Failed if prior.attempt >= terms.max_attempts => {
            Prior::Answers(Claimed::refused_for(RefusalReason::Exhausted, entry()))
        }
        Status::Failed => Prior::MayBeRetried,
    }
}

fn abandon(mut document: Document, key: &str, terms: &Terms) -> Step<Claimed> {
    let seq = document.tick();
    let Some(effect) = document.effect_to_change(key) else {
        return Step::unchanged(Claimed::refused(RefusalReason::UnknownRun));
    };
    effect.settled_at = Some(effect.abandoned_at(terms));
    effect.settle_seq = Some(seq);
    effect.status = Status::Ambiguous;
    if effect.error.as_deref().is_none_or(str::is_empty) {
        effect.error = Some(ABANDONED.to_owned());
    }
    let entry = effect.clone();
    Step::write(document, Claimed::Ambiguous(entry))
}

fn ask_for_run(
    mut document: Document,
    prior: Option<&Effect>,
    input: &Claim,
    now: Number,
    terms: &Terms,
) -> Step<Claimed> {
    let Some(asker) = &input.asker else { return acquire(document, prior, input, now, terms) };
    let Some(run) = document.run(&asker.run_id) else {
        return Step::unchanged(Claimed::refused(RefusalReason::UnknownRun));
    };
    let reason = if run.is_cancelled() {
        Some(RefusalReason::RunCancelled)
    } else if run.ended_at.is_some() {
        Some(RefusalReason::RunEnded)
    } else if asker.token.is_some_and(|token| token != run.token) || run.is_superseded(&document, now, terms)
    {
        Some(RefusalReason::Superseded)
    } else {
        None
    };
    if let Some(reason) = reason {
        return Step::unchanged(Claimed::refused(reason));
    }
    let in_the_way = |mode| conflicts(&document, run, &input.key, &input.intent, mode, now, terms);
    let mut conflicts = in_the_way(input.conflict);
    if conflicts.total == 0 {
        return acquire(document, prior, input, now, terms);
    }
    // Mended: what is acknowledged is told. The original acknowledges effects of other intents without a word.
    if input.acknowledges && !terms.is_strict() {
        conflicts = in_the_way(ConflictMode::Any);
    }
    let reason = RefusalReason::ConversationChanged;
    let refused = Claimed::Refused { reason, conflicts, entry: None };
    if !input.acknowledges {
        return Step::unchanged(refused);
    }
    let seq = document.tick();
    if let Some(run) = document.run_to_change(&asker.run_id) {
        run.see(seq, now);
    }
    Step::write(document, refused)
}

fn acquire(
    mut document: Document,
    prior: Option<&Effect>,
    input: &Claim,
    now: Number,
    terms: &Terms,
) -> Step<Claimed> {
    let seq = document.tick();
    let mut token = None;
    if let Some(run) = input.asker.as_ref().and_then(|asker| document.run_to_change(&asker.run_id)) {
        run.wrote = true;
        run.extend(now + input.lease);
        token = Some(run.token);
    }
    let mut effect = Effect {
        key: input.key.clone(),
        scope: input.scope.clone(),
        intent: input.intent.clone(),
        status: Status::Pending,
        attempt: prior.map_or(Number::ONE, |prior| prior.attempt + Number::ONE),
        attempt_id: input.attempt_id.clone(),
        run_id: input.asker.as_ref().map(|asker| asker.run_id.clone()),
        token,
        summary: input.summary.as_deref().map(|summary| effect::summary(summary, terms.compat)),
        error: None,
        created_at: prior.map_or(now, |prior| prior.created_at),
        claimed_at: now,
        settled_at: None,
        claim_seq: seq,
        settle_seq: None,
        result: None,
        rest: Members::new(),
    };
    if !terms.is_strict() {
        effect.set_deadline(now + terms.pending_ttl);
        if input.marks_point_of_no_return {
            effect.set_sent(Sent::NotYet);
        }
        if let Some(payload) = &input.payload {
            effect.set_payload(payload);
        }
    }
    document.effects.insert(input.key.clone(), Kept::Changed(effect.clone()));
    Step::write(document, Claimed::Acquired(effect))
}
