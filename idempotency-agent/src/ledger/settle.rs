//! How an attempt ended: by its own word, or by somebody's who found out.

use super::{
    Document, DocumentError, Effect, NOT_APPLIED, Number, Raw, RefusalReason, Status, Step, Terms,
    effect::{self, Sent},
};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It happened.
    Committed,
    /// It did not happen.
    Failed,
    /// Nobody knows.
    Ambiguous,
}

impl Verdict {
    const fn status(self) -> Status {
        match self {
            Self::Committed => Status::Committed,
            Self::Failed => Status::Failed,
            Self::Ambiguous => Status::Ambiguous,
        }
    }
}

/// What an attempt brings to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// The effect's key.
    pub key: String,
    /// The name of the attempt.
    pub attempt_id: String,
    /// How it ended.
    pub verdict: Verdict,
    /// What it came to: kept only when committed, and only when it is not too long. None and null differ.
    pub result: Option<Raw>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Whether an ending counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It did.
    Settled {
        /// The entry.
        entry: Effect,
        /// Whether the attempt had been given up before.
        was_abandoned: bool,
    },
    /// It did not: another attempt, or somebody's word, stands there.
    Stale(Option<Effect>),
}

/// Ends an attempt. Runs are not looked at: whoever claimed may settle.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn settle(
    document: Document,
    input: &Settle,
    now: Number,
    terms: &Terms,
) -> Result<Step<Settled>, DocumentError> {
    let mut document = document.load(terms, now)?;
    let Some(found) = document.effect(&input.key).cloned() else {
        return Ok(Step::unchanged(Settled::Stale(None)));
    };
    let wanted = input.verdict.status();
    let is_mine = found.attempt_id == input.attempt_id;
    // Mended: it counted already, and the answer was lost.
    if !terms.is_strict() && is_mine && found.status == wanted {
        return Ok(Step::unchanged(Settled::Settled { entry: found, was_abandoned: false }));
    }
    let is_open = match found.status {
        Status::Pending | Status::Ambiguous => true,
        Status::Failed => wanted == Status::Committed, // a late truth
        Status::Committed => false,
    };
    if !is_mine || !is_open {
        return Ok(Step::unchanged(Settled::Stale(Some(found))));
    }
    let was_abandoned = found.status != Status::Pending || found.is_abandoned(now, terms);
    let seq = document.tick();
    let Some(entry) = document.effect_to_change(&input.key) else {
        return Ok(Step::unchanged(Settled::Stale(None)));
    };
    entry.status = wanted;
    entry.settled_at = Some(now);
    entry.settle_seq = Some(seq);
    entry.error = input.error.as_deref().map(|error| effect::error(error, terms.compat));
    if let Some(result) = input.result.clone().filter(|_| wanted == Status::Committed) {
        entry.keep_result(result, terms);
    }
    if wanted != Status::Failed && entry.is_unsent(terms) {
        entry.set_sent(Sent::Yes); // it happened, or may have: the mark was forgotten
    }
    let entry = entry.clone();
    Ok(Step::write(document, Settled::Settled { entry, was_abandoned }))
}

/// How an effect in doubt turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// It happened.
    Committed,
    /// It did not happen.
    NotApplied,
}

impl Resolution {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::NotApplied => "not_applied",
        }
    }
}

/// What somebody who found out brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// The effect's key.
    pub key: String,
    /// How it turned out.
    pub resolution: Resolution,
    /// What it came to, if that is known.
    pub result: Option<Raw>,
    /// The attempt that was looked into; none resolves whichever stands there.
    pub attempt_id: Option<String>,
}

/// Says how an effect in doubt turned out. Nothing, unless it is in doubt and of that attempt.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn resolve(
    document: Document,
    input: &Resolve,
    now: Number,
    terms: &Terms,
) -> Result<Step<Option<Effect>>, DocumentError> {
    let mut document = document.load(terms, now)?;
    if !is_in_doubt(&document, &input.key, input.attempt_id.as_deref(), now, terms) {
        return Ok(Step::unchanged(None));
    }
    let seq = document.tick();
    let Some(entry) = document.effect_to_change(&input.key) else { return Ok(Step::unchanged(None)) };
    entry.settled_at = Some(now);
    entry.settle_seq = Some(seq);
    match input.resolution {
        Resolution::Committed => {
            entry.status = Status::Committed;
            entry.error = None;
            if let Some(result) = input.result.clone() {
                entry.keep_result(result, terms);
            }
        }
        Resolution::NotApplied => {
            entry.status = Status::Failed;
            entry.error = Some(NOT_APPLIED.to_owned());
        }
    }
    let entry = entry.clone();
    Ok(Step::write(document, Some(entry)))
}

fn is_in_doubt(document: &Document, key: &str, attempt_id: Option<&str>, now: Number, terms: &Terms) -> bool {
    document.effect(key).is_some_and(|entry| {
        attempt_id.is_none_or(|attempt_id| attempt_id == entry.attempt_id)
            && entry.effective_status(now, terms) == Status::Ambiguous
    })
}

/// Who wants to find out how an attempt in doubt ended, and until when he will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconcile {
    /// The effect's key.
    pub key: String,
    /// The attempt in doubt.
    pub attempt_id: String,
    /// How long finding out takes at most, in milliseconds.
    pub lease: Number,
}

/// Asks for the right to find out how an attempt in doubt ended: one at a time. The original has no such right; there
/// everybody finds out at once.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn reconcile(
    document: Document,
    input: &Reconcile,
    now: Number,
    terms: &Terms,
) -> Result<Step<bool>, DocumentError> {
    let mut document = document.load(terms, now)?;
    if !is_in_doubt(&document, &input.key, Some(&input.attempt_id), now, terms) {
        return Ok(Step::unchanged(false));
    }
    let Some(entry) = document.effect(&input.key) else { return Ok(Step::unchanged(false)) };
    if entry.reconciled_until().is_some_and(|until| until > now) {
        return Ok(Step::unchanged(false));
    }
    if let Some(entry) = document.effect_to_change(&input.key) {
        entry.set_reconciling(now + input.lease);
    }
    document.tick();
    Ok(Step::write(document, true))
}

/// Gives that right back, so that whoever asks next may find out.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn give_up_reconciling(
    document: Document,
    input: &Reconcile,
    now: Number,
    terms: &Terms,
) -> Result<Step<()>, DocumentError> {
    let mut document = document.load(terms, now)?;
    if !is_in_doubt(&document, &input.key, Some(&input.attempt_id), now, terms) {
        return Ok(Step::unchanged(()));
    }
    if let Some(entry) = document.effect_to_change(&input.key) {
        entry.set_reconciling(now);
    }
    document.tick();
    Ok(Step::write(document, ()))
}

/// An attempt that has come to its point of no return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The effect's key.
    pub key: String,
    /// The name of the attempt.
    pub attempt_id: String,
}

/// Marks that an attempt passes its point of no return: from here on its effect may have happened.
///
/// An attempt that is still the one, of a run that still may write, may pass. Any other must not go on; nothing of it has
/// happened.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn pass(
    document: Document,
    input: &Pass,
    now: Number,
    terms: &Terms,
) -> Result<Step<Result<(), RefusalReason>>, DocumentError> {
    let mut document = document.load(terms, now)?;
    let refused = match document.effect(&input.key) {
        Some(entry) if entry.attempt_id == input.attempt_id && entry.status == Status::Pending => {
            if entry.is_abandoned(now, terms) {
                Some(RefusalReason::Superseded)
            } else {
                entry.run_id.as_deref().and_then(|id| refusal_of_run(&document, id, entry.token, now, terms))
            }
        }
        _ => Some(RefusalReason::Superseded),
    };
    if let Some(refused) = refused {
        return Ok(Step::unchanged(Err(refused)));
    }
    if let Some(entry) = document.effect_to_change(&input.key) {
        entry.set_sent(Sent::Yes);
    }
    document.tick();
    Ok(Step::write(document, Ok(())))
}

fn refusal_of_run(
    document: &Document,
    id: &str,
    token: Option<Number>,
    now: Number,
    terms: &Terms,
) -> Option<RefusalReason> {
    let Some(run) = document.run(id) else { return Some(RefusalReason::UnknownRun) };
    if run.is_cancelled() {
        Some(RefusalReason::RunCancelled)
    } else if run.ended_at.is_some() {
        Some(RefusalReason::RunEnded)
    } else if token != Some(run.token) || run.is_superseded(document, now, terms) {
        Some(RefusalReason::Superseded)
    } else {
        None
    }
}
