//! What others did in the conversation since a run looked.

use super::{Document, Effect, Number, Run, Status, Terms};

/// How many are listed.
const LISTED: usize = 10;

/// Which effects of others keep an effect from being attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ConflictMode {
    /// Any.
    #[default]
    Any,
    /// Those of the same intent.
    SameIntent,
    /// None.
    None,
}

impl ConflictMode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::SameIntent => "same-intent",
            Self::None => "none",
        }
    }
}

/// Something others did, or are about to do, that a run has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The effect's key.
    pub key: String,
    /// Its intent.
    pub intent: String,
    /// Where it is.
    pub status: Status,
    /// Whose it is; none outside of runs.
    pub run_id: Option<String>,
    /// What it does, in words.
    pub summary: Option<String>,
    /// When it was settled, or else claimed.
    pub at: Number,
}

/// What others did: the listed ones, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conflicts {
    /// At most ten, the oldest first. Where there are more, the original lists the ten oldest, the mended law the ten
    /// newest.
    pub listed: Vec<Conflict>,
    /// How many there are in all.
    pub total: usize,
}

/// What stands in the way of an effect of `intent` under `key`.
pub(super) fn conflicts(
    document: &Document,
    run: &Run,
    key: &str,
    intent: &str,
    mode: ConflictMode,
    now: Number,
    terms: &Terms,
) -> Conflicts {
    if mode == ConflictMode::None {
        return Conflicts::default();
    }
    let of_others = document.effects().filter(|effect| {
        let is_of_this_delivery = effect.run_id.as_deref() == Some(&run.run_id)
            && (effect.token == Some(run.token) || effect.intent != intent);
        effect.key != key && !is_of_this_delivery
    });
    let counts = |effect: &&Effect| mode == ConflictMode::Any || effect.intent == intent;
    let unseen = of_others.filter(counts).filter(|effect| is_unseen(effect, run, now, terms));
    let mut listed: Vec<Conflict> = unseen.map(|effect| Conflict::of(effect, now, terms)).collect();
    listed.sort_by_key(|conflict| conflict.at);
    let total = listed.len();
    match terms.is_strict() {
        true => listed.truncate(LISTED),
        false => drop(listed.drain(..total.saturating_sub(LISTED))),
    }
    Conflicts { listed, total }
}

fn is_unseen(effect: &Effect, run: &Run, now: Number, terms: &Terms) -> bool {
    match effect.status {
        Status::Failed => false,
        _ if effect.effective_status(now, terms) == Status::Failed => false,
        Status::Pending if effect.is_abandoned(now, terms) => effect.abandoned_at(terms) >= run.seen_at,
        Status::Pending => true,
        Status::Committed | Status::Ambiguous => {
            effect.settle_seq.unwrap_or(Number::ZERO) > run.seen_seq
                || run.context_at.is_some_and(|read| effect.settled_at.unwrap_or(Number::ZERO) >= read)
        }
    }
}

impl Conflict {
    fn of(effect: &Effect, now: Number, terms: &Terms) -> Self {
        Self {
            key: effect.key.clone(),
            intent: effect.intent.clone(),
            status: effect.effective_status(now, terms),
            run_id: effect.run_id.clone(),
            summary: effect.summary.clone(),
            at: effect.settled_at.unwrap_or(effect.claimed_at),
        }
    }
}
