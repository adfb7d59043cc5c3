//! A run that lives on, and its end.

use super::{Document, DocumentError, Number, Run, Step, Terms, run::CANCELLED};

/// What a worker brings to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renew {
    /// The run's id.
    pub run_id: String,
    /// The token its delivery was given.
    pub token: Number,
    /// How long it lives from now on, in milliseconds.
    pub lease: Number,
}

/// Why a run does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RenewRefused {
    /// There is no such run, or none any more.
    UnknownRun,
    /// A newer run or a later delivery has taken its place.
    Superseded,
    /// It was withdrawn.
    RunCancelled,
    /// It ended.
    RunEnded,
}

impl RenewRefused {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownRun => "unknown_run",
            Self::Superseded => "superseded",
            Self::RunCancelled => "run_cancelled",
            Self::RunEnded => "run_ended",
        }
    }
}

/// Extends the life of a run.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn renew(
    document: Document,
    input: &Renew,
    now: Number,
    terms: &Terms,
) -> Result<Step<Result<Run, RenewRefused>>, DocumentError> {
    let mut document = document.load(terms, now)?;
    let refused = match document.run(&input.run_id) {
        None => Some(RenewRefused::UnknownRun),
        Some(run) if run.token != input.token => Some(RenewRefused::Superseded),
        Some(run) if run.is_cancelled() => Some(RenewRefused::RunCancelled),
        Some(run) if run.ended_at.is_some() => Some(RenewRefused::RunEnded),
        Some(run) if run.is_superseded(&document, now, terms) => Some(RenewRefused::Superseded),
        Some(_) => None,
    };
    if let Some(refused) = refused {
        return Ok(Step::unchanged(Err(refused)));
    }
    let Some(run) = document.run_to_change(&input.run_id) else {
        return Ok(Step::unchanged(Err(RenewRefused::UnknownRun)));
    };
    run.extend(now + input.lease);
    let run = run.clone();
    document.tick();
    Ok(Step::write(document, Ok(run)))
}

/// What ends a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The run's id.
    pub run_id: String,
    /// Why it ends.
    pub reason: String,
    /// The token of the delivery that ends it: an earlier one ends nothing. None ends it whatever its token.
    pub token: Option<Number>,
}

impl End {
    /// Withdraws the run.
    pub fn cancel(run_id: impl Into<String>) -> Self {
        Self { run_id: run_id.into(), reason: CANCELLED.to_owned(), token: None }
    }
}

/// Ends a run. The verdict is the run, or nothing where there is none, or none that the token may end.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn end(
    document: Document,
    input: &End,
    now: Number,
    terms: &Terms,
) -> Result<Step<Option<Run>>, DocumentError> {
    let mut document = document.load(terms, now)?;
    let Some(found) = document.run(&input.run_id).cloned() else { return Ok(Step::unchanged(None)) };
    if input.token.is_some_and(|token| token != found.token) {
        return Ok(Step::unchanged(None));
    }
    let is_cancelled_now = input.reason == CANCELLED && !found.is_cancelled();
    if found.ended_at.is_some() && !is_cancelled_now {
        return Ok(Step::unchanged(Some(found)));
    }
    let Some(run) = document.run_to_change(&input.run_id) else { return Ok(Step::unchanged(None)) };
    run.ended_at = run.ended_at.or(Some(now));
    run.end_reason = Some(input.reason.clone());
    let run = run.clone();
    document.tick();
    Ok(Step::write(document, Some(run)))
}
