//! Where the law meets a store: a call becomes one transaction on one scope.

use std::sync::Arc;

use idempotency_core::{
    LedgerLayout, LedgerStore, Motion, Revision, Sheets,
    clock::{Clock, SystemClock, Timestamp},
};

use crate::{
    Compat, LedgerError, LedgerScope,
    ledger::{Document, DocumentError, Number, Step, Terms},
    shelf::{self, Shelved},
};

/// A store, and the terms by which the law is applied to what stands in it.
pub(crate) struct Desk<S> {
    store: S,
    pub(crate) terms: Terms,
    clock: Option<Arc<dyn Clock>>,
}

/// What an input looks at, so that no more of a long scope is read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needs<'n> {
    /// The effect under this key.
    pub(crate) key: Option<&'n str>,
    /// The run of this id.
    pub(crate) run: Option<&'n str>,
    /// What else, given what these show.
    pub(crate) beyond: Beyond,
}

/// What an input looks at beyond an effect and a run.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Beyond {
    #[default]
    Nothing,
    /// What others did since the run looked.
    Unseen,
    /// What earlier deliveries of the run did.
    Own,
}

impl<S: LedgerStore> Desk<S> {
    pub(crate) fn new(store: S, terms: Terms, clock: Option<Arc<dyn Clock>>) -> Self {
        Self { store, terms, clock }
    }

    pub(crate) const fn store(&self) -> &S {
        &self.store
    }

    #[cfg(test)]
    pub(crate) fn into_store(self) -> S {
        self.store
    }

    /// Applies `law` within one transaction on `scope`.
    pub(crate) async fn apply<V: Send>(
        &self,
        scope: &LedgerScope,
        needs: Needs<'_>,
        law: impl Fn(Document, Number, &Terms) -> Result<Step<V>, DocumentError> + Send + Sync,
    ) -> Result<V, LedgerError> {
        let own = self.own_time();
        let names = match self.store.layout() {
            LedgerLayout::Whole => Vec::new(),
            LedgerLayout::Split => shelf::names(&needs),
        };
        let mut calls = 0;
        let answered = self.store.transact(scope.as_str(), &names, |folio, now| {
            calls += 1;
            let now = own.unwrap_or_else(|| millis(now));
            let Shelved { document, loaded, shelf } = match Shelved::read(folio) {
                Ok(shelved) => shelved,
                Err(error) => return Motion::Keep(Err(error)),
            };
            let is_split = self.store.layout() == LedgerLayout::Split;
            if is_split && calls == 1 && shelf.is_needed(&document, &needs, now, &self.terms) {
                return Motion::ReadAll;
            }
            let step = match law(document, now, &self.terms) {
                Ok(step) => step,
                Err(error) => return Motion::Keep(Err(error)),
            };
            let Some(written) = step.write else { return Motion::Keep(Ok(step.verdict)) };
            let settled = written.is_settled();
            let revision = match is_split {
                false => Revision { head: written.to_text(), sheets: [].into(), settled },
                true => {
                    let (head, sheets) = shelf.put_away(written, &loaded, now, calls > 1, &self.terms);
                    Revision { head, sheets, settled }
                }
            };
            Motion::Write(revision, Ok(step.verdict))
        });
        Ok(answered.await??)
    }

    /// Reads the effect under `key` and what stands beside it, or everything.
    pub(crate) async fn read(
        &self,
        scope: &LedgerScope,
        key: Option<&str>,
    ) -> Result<(Document, Number), LedgerError> {
        let own = self.own_time();
        let names = shelf::names(&Needs { key, ..Needs::default() });
        let sheets = if key.is_some() { Sheets::Named(&names) } else { Sheets::All };
        let (folio, now) = self.store.read(scope.as_str(), sheets).await?;
        Ok((Shelved::read(&folio)?.document, own.unwrap_or_else(|| millis(now))))
    }

    /// The time before the call, where not the store's clock is asked: the original asks its caller's.
    fn own_time(&self) -> Option<Number> {
        match (&self.clock, self.terms.compat) {
            (Some(clock), _) => Some(millis(clock.now())),
            (None, Compat::Strict) => Some(millis(SystemClock.now())),
            (None, Compat::Mended) => None,
        }
    }
}

fn millis(at: Timestamp) -> Number {
    Number::from(at.as_micros() / 1_000)
}
