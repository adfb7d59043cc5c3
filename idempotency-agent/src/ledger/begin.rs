//! Beginning a run, or taking up again one that was delivered before.

use super::{Document, DocumentError, Effect, Number, Run, RunMode, Step, Terms, document::Kept};
use crate::json::Members;

/// What a worker brings to begin a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The run's id.
    pub run_id: String,
    /// How it lives with others. A run that is taken up again keeps the mode it began with.
    pub mode: RunMode,
    /// How long it lives unless it is renewed, in milliseconds.
    pub lease: Number,
    /// When what it has read was read; none when it reads from now on.
    pub context_at: Option<Number>,
}

/// How a run began.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each call")]
pub enum Begun {
    /// Another run lives: nothing was written.
    Busy(Busy),
    /// The run is there.
    Run {
        /// In which state.
        state: BeginState,
        /// The run.
        run: Run,
        /// What earlier deliveries of it attempted.
        prior: Vec<Effect>,
    },
}

/// The run that lives in the place of one that would begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// Its id.
    pub run_id: String,
    /// Its token.
    pub token: Number,
    /// Until when it lives unless it is renewed.
    pub lease_expires_at: Number,
}

/// In which state a run is when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BeginState {
    /// Its first delivery.
    New,
    /// A later delivery; the earlier ones are fenced.
    Resumed,
    /// A newer run has taken its place: it may not write.
    Superseded,
    /// It ended before.
    Ended,
}

impl BeginState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Resumed => "resumed",
            Self::Superseded => "superseded",
            Self::Ended => "ended",
        }
    }
}

/// Begins a run, or takes it up again.
///
/// # Errors
/// [`DocumentError`] when the document cannot be worked with.
pub fn begin(
    document: Document,
    input: &Begin,
    now: Number,
    terms: &Terms,
) -> Result<Step<Begun>, DocumentError> {
    let document = document.load(terms, now)?;
    match document.runs.get(&input.run_id) {
        None => Ok(create(document, input, now, terms)),
        Some(kept) => match kept.get().cloned() {
            Some(run) => Ok(resume(document, run, input, now, terms)),
            None => Err(DocumentError::UnreadableEntry(input.run_id.clone())),
        },
    }
}

fn create(mut document: Document, input: &Begin, now: Number, terms: &Terms) -> Step<Begun> {
    if input.mode == RunMode::Exclusive
        && let Some(holder) = holder(&document, now, terms)
    {
        return Step::unchanged(Begun::Busy(holder));
    }
    let seq = document.tick();
    let context_at = input.context_at.map(|read_at| read_at.min(now));
    let mut run = Run {
        run_id: input.run_id.clone(),
        token: document.next_token(),
        mode: input.mode,
        started_at: now,
        order_at: match input.mode {
            RunMode::Exclusive => now,
            RunMode::Supersede => context_at.unwrap_or(now),
        },
        lease_expires_at: now + input.lease,
        seen_seq: seq,
        seen_at: context_at.unwrap_or(now),
        context_at,
        base_seq: seq,
        base_context_at: context_at,
        wrote: false,
        ended_at: None,
        end_reason: None,
        rest: Members::new(),
    };
    let mut state = BeginState::New;
    if run.is_superseded(&document, now, terms) {
        state = BeginState::Superseded;
        // Mended: who may not write keeps nobody out. Its redelivery may still find the way free.
        if !terms.is_strict() {
            run.lease_expires_at = now;
        }
    }
    document.runs.insert(run.run_id.clone(), Kept::Changed(run.clone()));
    Step::write(document, Begun::Run { state, run, prior: Vec::new() })
}

/// The run that keeps an exclusive one from beginning. Mended: one that may not write keeps nobody out.
fn holder(document: &Document, now: Number, terms: &Terms) -> Option<Busy> {
    let counts =
        |run: &&Run| run.is_live(now) && (terms.is_strict() || !run.is_superseded(document, now, terms));
    let latest = |latest: &'_ Run, run: &'_ Run| run.token > latest.token;
    let live = document.runs().filter(counts);
    live.reduce(|found, run| if latest(found, run) { run } else { found }).map(Busy::of)
}

impl Busy {
    pub(super) fn of(run: &Run) -> Self {
        Self { run_id: run.run_id.clone(), token: run.token, lease_expires_at: run.lease_expires_at }
    }
}

fn resume(mut document: Document, mut run: Run, input: &Begin, now: Number, terms: &Terms) -> Step<Begun> {
    let own = |document: &Document| -> Vec<Effect> {
        document.effects().filter(|effect| effect.run_id.as_ref() == Some(&run.run_id)).cloned().collect()
    };
    if run.ended_at.is_some() {
        let prior = own(&document);
        return Step::unchanged(Begun::Run { state: BeginState::Ended, run, prior });
    }
    // Mended: in the original a redelivery takes an exclusive scope from whoever took it over meanwhile.
    if !terms.is_strict() && run.mode == RunMode::Exclusive {
        let others = document.runs().filter(|other| other.run_id != run.run_id);
        let mut live = others.filter(|other| other.mode == RunMode::Exclusive && other.is_live(now));
        if let Some(other) = live.next() {
            return Step::unchanged(Begun::Busy(Busy::of(other)));
        }
    }
    let prior = own(&document);
    document.tick();
    run.token = document.next_token();
    run.seen_seq = run.base_seq;
    run.seen_at = run.base_context_at.unwrap_or(run.started_at);
    run.context_at = run.base_context_at;
    look_afresh(&document, &mut run, input.context_at, now, terms);
    let superseded = run.is_superseded(&document, now, terms);
    // Mended: who may not write keeps nobody out.
    if terms.is_strict() || !superseded {
        run.extend(now + input.lease);
    }
    let state = if superseded { BeginState::Superseded } else { BeginState::Resumed };
    document.runs.insert(run.run_id.clone(), Kept::Changed(run.clone()));
    Step::write(document, Begun::Run { state, run, prior })
}

/// A later delivery that has read again has seen what was settled before it read. Its place in line stays.
fn look_afresh(document: &Document, run: &mut Run, read_at: Option<Number>, now: Number, terms: &Terms) {
    let Some(read_at) = read_at.filter(|read_at| *read_at > run.seen_at) else { return };
    let fresh = read_at.min(now);
    // Mended: a clock that lags behind the one before takes nothing back.
    if !terms.is_strict() && fresh <= run.seen_at {
        return;
    }
    for effect in document.effects() {
        if let (Some(seq), Some(at)) = (effect.settle_seq, effect.settled_at)
            && at < fresh
        {
            run.seen_seq = run.seen_seq.max(seq);
        }
    }
    run.seen_at = fresh;
    run.context_at = Some(fresh);
}
