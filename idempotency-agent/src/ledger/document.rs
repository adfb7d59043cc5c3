//! The document of a scope, and its text.

use indexmap::IndexMap;

use super::{
    Effect, Number, Raw, Run, Terms,
    effect::{Status, raw_number},
};
use crate::json::{Members, NotJson, ObjectWriter, members};

/// The document of a scope: what stands in its store.
///
/// What it does not know, on all three levels, it carries along; and an entry that nobody changes is written back as the
/// text it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    version: Raw,
    pub(crate) seq: Number,
    pub(super) token_seq: Number,
    pub(crate) runs: IndexMap<String, Kept<Run>>,
    pub(crate) effects: IndexMap<String, Kept<Effect>>,
    pub(crate) rest: Members,
}

/// Why a document cannot be worked with. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is not JSON.
    #[error("the scope's document is not JSON")]
    NotJson(#[from] NotJson),
    /// A part of it is not of the kind it has to be.
    #[error("the scope's document has an unreadable {0}")]
    Unreadable(&'static str),
    /// It is of a version that this crate does not know.
    #[error("the scope's document is of the unknown version {0}")]
    UnknownVersion(Raw),
    /// The entry under the key, or the run, cannot be read. The others of the scope can.
    #[error("the scope's entry {0:?} cannot be read")]
    UnreadableEntry(String),
}

impl Document {
    /// The document of a scope that nobody has written to.
    pub fn empty() -> Self {
        Self {
            version: raw_number(Number::ONE),
            seq: Number::ZERO,
            token_seq: Number::ZERO,
            runs: IndexMap::new(),
            effects: IndexMap::new(),
            rest: Members::new(),
        }
    }

    /// Reads the text that stands in a store; an empty object is the empty document.
    ///
    /// # Errors
    /// [`DocumentError`] when it is no document. Single entries that cannot be read do not count.
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let mut rest = members(text)?;
        if rest.is_empty() {
            return Ok(Self::empty());
        }
        let version = rest.shift_remove("v").unwrap_or_else(Raw::null);
        let mut counter = |name| match rest.shift_remove(name) {
            None => Ok(Number::ZERO),
            Some(raw) => raw.to_number().ok_or(DocumentError::Unreadable(name)),
        };
        let (seq, token_seq) = (counter("seq")?, counter("tokenSeq")?);
        let mut entries = |name| match rest.shift_remove(name) {
            None => Ok(Members::new()),
            Some(raw) => members(raw.as_str()).map_err(|_| DocumentError::Unreadable(name)),
        };
        let (runs, effects) = (entries("runs")?, entries("effects")?);
        let runs = runs.into_iter().map(|(id, raw)| (id, Kept::read(raw))).collect();
        let effects = effects.into_iter().map(|(key, raw)| (key, Kept::read(raw))).collect();
        Ok(Self { version, seq, token_seq, runs, effects, rest })
    }

    /// The text to store.
    pub fn to_text(&self) -> String {
        let mut all = ObjectWriter::new();
        all.raw("v", self.version.as_str()).number("seq", self.seq).number("tokenSeq", self.token_seq);
        all.raw("runs", &entries_text(&self.runs)).raw("effects", &entries_text(&self.effects));
        all.members(&self.rest).end()
    }

    /// The effect under `key`.
    pub fn effect(&self, key: &str) -> Option<&Effect> {
        self.effects.get(key).and_then(Kept::get)
    }

    /// All effects that can be read, in the document's order.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.effects.values().filter_map(Kept::get)
    }

    /// The run of this id.
    pub fn run(&self, id: &str) -> Option<&Run> {
        self.runs.get(id).and_then(Kept::get)
    }

    /// All runs that can be read, in the document's order.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.values().filter_map(Kept::get)
    }

    /// Whether every effect is committed or failed: whether nothing is lost that anybody would have to look into when
    /// the whole document goes. What cannot be read counts as unsettled.
    pub fn is_settled(&self) -> bool {
        self.effects.values().all(|kept| kept.get().is_some_and(|effect| effect.status.is_final()))
    }

    pub(crate) fn effect_to_change(&mut self, key: &str) -> Option<&mut Effect> {
        self.effects.get_mut(key).and_then(Kept::change)
    }

    pub(crate) fn run_to_change(&mut self, id: &str) -> Option<&mut Run> {
        self.runs.get_mut(id).and_then(Kept::change)
    }

    /// What every writing input begins with: the version is checked, and what is older than its retention goes.
    pub(super) fn load(mut self, terms: &Terms, now: Number) -> Result<Self, DocumentError> {
        let is_one = self.version.to_number() == Some(Number::ONE)
            || (terms.is_strict() && self.version.as_str() == "true"); // which is equal to 1 in Python
        if !is_one {
            return Err(DocumentError::UnknownVersion(self.version));
        }
        let horizon = now - terms.retention;
        let gone: Vec<String> = self
            .effects
            .iter()
            .filter(|(_, kept)| kept.get().is_some_and(|effect| effect.is_past(horizon)))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            self.remove_effect(&key, terms);
        }
        self.runs.retain(|_, kept| kept.get().is_none_or(|run| !run.is_past(horizon)));
        Ok(self)
    }

    /// Takes an effect out. Its run remembers whether what left it had happened.
    pub(crate) fn remove_effect(&mut self, key: &str, terms: &Terms) -> Option<Kept<Effect>> {
        let removed = self.effects.shift_remove(key)?;
        let effect = removed.get().filter(|_| !terms.is_strict());
        if let Some((id, status)) = effect.and_then(|effect| Some((effect.run_id.clone()?, effect.status))) {
            let landed = status != Status::Failed;
            let knows = |run: &Run| run.landed() == Some(true) || run.landed() == Some(landed);
            if self.run(&id).is_some_and(|run| !knows(run))
                && let Some(run) = self.run_to_change(&id)
            {
                run.set_landed(landed);
            }
        }
        Some(removed)
    }

    /// Counts a change of state.
    pub(super) fn tick(&mut self) -> Number {
        self.seq = self.seq + Number::ONE;
        self.seq
    }

    pub(super) fn next_token(&mut self) -> Number {
        self.token_seq = self.token_seq + Number::ONE;
        self.token_seq
    }
}

fn entries_text<T: Entry>(entries: &IndexMap<String, Kept<T>>) -> String {
    let mut all = ObjectWriter::new();
    for (name, kept) in entries {
        match kept {
            Kept::Stored(raw, _) | Kept::Unreadable(raw) => all.raw(name, raw.as_str()),
            Kept::Changed(entry) => all.raw(name, &entry.to_text()),
        };
    }
    all.end()
}

/// What a document holds under a name.
pub(crate) trait Entry: Sized {
    fn read(members: Members) -> Option<Self>;
    fn to_text(&self) -> String;
}

/// An entry and the text it was read from, until it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept<T> {
    Stored(Raw, T),
    Changed(T),
    /// What stands there is no entry. It stays as it is.
    Unreadable(Raw),
}

impl<T: Entry> Kept<T> {
    pub(crate) fn read(raw: Raw) -> Self {
        match members(raw.as_str()).ok().and_then(T::read) {
            Some(entry) => Self::Stored(raw, entry),
            None => Self::Unreadable(raw),
        }
    }
}

impl<T: Entry> Kept<T> {
    /// Its text.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Stored(raw, _) | Self::Unreadable(raw) => raw.as_str().to_owned(),
            Self::Changed(entry) => entry.to_text(),
        }
    }
}

impl<T> Kept<T> {
    pub(crate) const fn get(&self) -> Option<&T> {
        match self {
            Self::Stored(_, entry) | Self::Changed(entry) => Some(entry),
            Self::Unreadable(_) => None,
        }
    }

    fn change(&mut self) -> Option<&mut T> {
        let owned = std::mem::replace(self, Self::Unreadable(Raw::null()));
        *self = match owned {
            Self::Stored(_, entry) => Self::Changed(entry),
            same => same,
        };
        match self {
            Self::Changed(entry) => Some(entry),
            Self::Stored(..) | Self::Unreadable(_) => None,
        }
    }
}
