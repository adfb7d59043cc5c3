//! Looking without writing.

use super::{Document, Effect, Number, Status, Terms};

/// What is known of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Where it is; none where nothing stands under its key.
    pub status: Option<Status>,
    /// What stands there.
    pub entry: Option<Effect>,
}

impl Checked {
    /// Whether it happened.
    pub fn is_done(&self) -> bool {
        self.status == Some(Status::Committed)
    }
}

/// Whether an entry is still remembered. The original answers from entries that its next write forgets: what `check` calls
/// done is then attempted once more.
fn is_remembered(effect: &Effect, now: Number, terms: &Terms) -> bool {
    terms.is_strict() || !effect.is_past(now - terms.retention)
}

/// What is known of the effect under `key`.
pub fn check(document: &Document, key: &str, now: Number, terms: &Terms) -> Checked {
    let entry = document.effect(key).filter(|effect| is_remembered(effect, now, terms)).cloned();
    Checked { status: entry.as_ref().map(|effect| effect.effective_status(now, terms)), entry }
}

/// All effects of the scope by the time of their first claim, each with where it is.
pub fn history(document: &Document, now: Number, terms: &Terms) -> Vec<(Effect, Status)> {
    let remembered = document.effects().filter(|effect| is_remembered(effect, now, terms));
    let mut all: Vec<_> =
        remembered.map(|effect| (effect.clone(), effect.effective_status(now, terms))).collect();
    all.sort_by_key(|(effect, _)| effect.created_at);
    all
}
