//! What those who asked for a run's effects were told, from which follows what to tell the queue of the run's job.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{EffectKey, LedgerError, Outcome, Refusal};

/// The last word on each effect that a run asked for.
#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<HashMap<EffectKey, Word>>);

/// What was said of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// That it is done.
    Done,
    /// Nothing yet, or that it runs, or that nobody knows.
    Open,
    /// That it may be attempted again.
    Free,
    /// That asking again comes to nothing else.
    Hopeless,
}

impl Told {
    /// An attempt begins of which whoever asked may never hear.
    pub(crate) fn open(&self, key: &EffectKey) {
        self.words().insert(key.clone(), Word::Open);
    }

    /// Hears what was answered. An error that says nothing of the effect leaves the last word.
    pub(crate) fn hear<T>(&self, key: &EffectKey, answer: &Result<Outcome<T>, LedgerError>) {
        let word = match answer {
            Ok(Outcome::Executed { .. } | Outcome::Replayed(_)) => Word::Done,
            Ok(Outcome::InFlight(_) | Outcome::Ambiguous { .. }) => Word::Open,
            Ok(Outcome::Failed { retryable: true, .. }) => Word::Free,
            Ok(
                Outcome::Failed { retryable: false, .. }
                | Outcome::Refused(Refusal::Exhausted(_) | Refusal::KeyTaken(_) | Refusal::PayloadChanged(_)),
            )
            | Err(LedgerError::ResultNotKept { .. } | LedgerError::StoredResult(_)) => Word::Hopeless,
            Ok(Outcome::Refused(_)) | Err(_) => return,
        };
        self.words().insert(key.clone(), word);
    }

    /// The last word on the effect under `key`.
    pub(crate) fn of(&self, key: &EffectKey) -> Option<Word> {
        self.words().get(key).copied()
    }

    /// The effects of which `word` is the last.
    pub(crate) fn all(&self, word: Word) -> Vec<EffectKey> {
        let words = self.words();
        let mut keys: Vec<_> =
            words.iter().filter(|(_, last)| **last == word).map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    fn words(&self) -> MutexGuard<'_, HashMap<EffectKey, Word>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
