//! The split layout: what a scope is working with in the head, what is long settled on sheets beside it.
//!
//! A scope's head holds its runs, its effects that are not settled, and the few that were settled last. Every other effect
//! has a sheet of its own, named by its key, which is read when somebody asks for that key. The head remembers of what it
//! put away only the last tick and the latest time, for all of it and for each run as far as it is others' doing. That is
//! enough to know when a call cannot be decided without what was put away: when a run looked before the last of it was
//! settled. Such a call reads everything, once, and comes to the very answer that one document would have given.

use std::collections::{BTreeMap, BTreeSet};

use idempotency_core::Folio;

use crate::{
    desk::{Beyond, Needs},
    json::{Members, ObjectWriter, Raw, members},
    ledger::{Document, DocumentError, Effect, Kept, Number, Run, Terms},
};

/// How many settled effects, and how many ended runs, stay in the head.
const RECENT: usize = 16;

/// After which part of the retention everything is read, so that what is past goes.
const SWEEPS: i128 = 8;

const SHELF: &str = "shelf";

fn effect_name(key: &str) -> String {
    format!("e:{key}")
}

fn run_name(id: &str) -> String {
    format!("r:{id}")
}

/// The sheets on which what an input needs may stand.
pub(crate) fn names(needs: &Needs<'_>) -> Vec<String> {
    needs.key.map(effect_name).into_iter().chain(needs.run.map(run_name)).collect()
}

/// A document as it was put together from a head and sheets.
pub(crate) struct Shelved {
    pub(crate) document: Document,
    /// The names of the sheets that were read.
    pub(crate) loaded: BTreeSet<String>,
    pub(crate) shelf: Shelf,
}

impl Shelved {
    pub(crate) fn read(folio: &Folio) -> Result<Self, DocumentError> {
        let mut document = folio.head.as_deref().map_or(Ok(Document::empty()), Document::read)?;
        let shelf = document.rest.shift_remove(SHELF).as_ref().and_then(Shelf::read).unwrap_or_default();
        for (name, text) in &folio.sheets {
            let raw = Raw::new(text)?;
            match name.split_once(':') {
                Some(("e", key)) => drop(document.effects.insert(key.to_owned(), Kept::read(raw))),
                Some(("r", id)) => drop(document.runs.insert(id.to_owned(), Kept::read(raw))),
                _ => return Err(DocumentError::Unreadable("sheet")),
            }
        }
        Ok(Self { document, loaded: folio.sheets.keys().cloned().collect(), shelf })
    }
}

/// Up to where effects were put away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// The last tick at which one of them was settled.
    seq: Number,
    /// The latest time at which one was.
    at: Number,
}

impl Mark {
    const NONE: Self = Self { seq: Number::ZERO, at: Number::Whole(i128::MIN) };

    fn cover(&mut self, effect: &Effect) {
        self.seq = self.seq.max(effect.settle_seq.unwrap_or(Number::ZERO));
        self.at = self.at.max(effect.settled_at.unwrap_or(Number::ZERO));
    }
}

/// What a head remembers of what was put away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shelf {
    all: Mark,
    /// For each run that may still write, and the token it had: what was put away and is not that delivery's own.
    runs: BTreeMap<String, (Number, Mark)>,
    swept: Option<Number>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self { all: Mark::NONE, runs: BTreeMap::new(), swept: None }
    }
}

impl Shelf {
    /// Whether an input cannot be decided without everything that was put away.
    pub(crate) fn is_needed(
        &self,
        document: &Document,
        needs: &Needs<'_>,
        now: Number,
        terms: &Terms,
    ) -> bool {
        if self.all == Mark::NONE {
            return false;
        }
        let sweep = Number::Whole(i128::from(terms.retention.as_u64()) / SWEEPS);
        if self.swept.is_none_or(|swept| now - swept >= sweep) || terms.compat == crate::Compat::Strict {
            return true;
        }
        let Some(run) = needs.run.and_then(|id| document.run(id)) else { return false };
        match needs.beyond {
            Beyond::Nothing => false,
            Beyond::Own => true,
            Beyond::Unseen => {
                let mark = self.mark(run);
                mark.seq > run.seen_seq || run.context_at.is_some_and(|read| mark.at >= read)
            }
        }
    }

    fn mark(&self, run: &Run) -> Mark {
        match self.runs.get(&run.run_id) {
            Some((token, mark)) if *token == run.token => *mark,
            _ => self.all,
        }
    }

    /// Splits a document into the head to write and the sheets that change.
    pub(crate) fn put_away(
        mut self,
        mut document: Document,
        loaded: &BTreeSet<String>,
        now: Number,
        swept: bool,
        terms: &Terms,
    ) -> (String, BTreeMap<String, Option<String>>) {
        if swept || self.swept.is_none() {
            self.swept = Some(now);
        }
        self.follow(&document);
        let mut sheets: BTreeMap<String, Option<String>> = BTreeMap::new();
        for key in settled_long_ago(&document) {
            let Some(kept) = document.remove_effect(&key, terms) else { continue };
            self.shelve(&kept, &document);
            put(&mut sheets, effect_name(&key), &kept, loaded);
        }
        for id in ended_long_ago(&document) {
            if let Some(kept) = document.runs.shift_remove(&id) {
                put(&mut sheets, run_name(&id), &kept, loaded);
            }
        }
        // What was read from a sheet and is in the head now, or in nothing, leaves its sheet.
        let stays: BTreeSet<String> = sheets.keys().cloned().collect();
        let put_back = |name: &&String| !stays.contains(*name);
        sheets.extend(loaded.iter().filter(put_back).map(|name| (name.clone(), None)));
        sheets.retain(|_, sheet| sheet.as_deref() != Some(UNCHANGED));
        let open = |id: &String| document.run(id).is_some_and(|run| run.ended_at.is_none());
        self.runs.retain(|id, _| open(id));
        document.rest.insert(SHELF.to_owned(), self.write());
        (document.to_text(), sheets)
    }

    /// Gives every run that may still write a mark of its delivery.
    fn follow(&mut self, document: &Document) {
        for run in document.runs().filter(|run| run.ended_at.is_none()) {
            let mark = self.mark(run);
            self.runs.insert(run.run_id.clone(), (run.token, mark));
        }
    }

    fn shelve(&mut self, kept: &Kept<Effect>, document: &Document) {
        let Some(effect) = kept.get() else { return };
        self.all.cover(effect);
        for (id, (token, mark)) in &mut self.runs {
            let is_own = effect.run_id.as_ref() == Some(id) && effect.token == Some(*token);
            if !is_own && document.run(id).is_some() {
                mark.cover(effect);
            }
        }
    }

    fn read(raw: &Raw) -> Option<Self> {
        let all = members(raw.as_str()).ok()?;
        let number = |members: &Members, name: &str| members.get(name).and_then(Raw::to_number);
        let mark =
            |members: &Members| Some(Mark { seq: number(members, "seq")?, at: number(members, "at")? });
        let mut runs = BTreeMap::new();
        for (id, raw) in members(all.get("runs")?.as_str()).ok()? {
            let run = members(raw.as_str()).ok()?;
            runs.insert(id, (number(&run, "token")?, mark(&run)?));
        }
        Some(Self { all: mark(&all)?, runs, swept: number(&all, "swept") })
    }

    fn write(&self) -> Raw {
        let mut runs = ObjectWriter::new();
        for (id, (token, mark)) in &self.runs {
            let mut run = ObjectWriter::new();
            run.number("token", *token).number("seq", mark.seq).number("at", mark.at);
            runs.raw(id, &run.end());
        }
        let mut all = ObjectWriter::new();
        all.number("seq", self.all.seq).number("at", self.all.at).maybe_number("swept", self.swept);
        all.raw("runs", &runs.end());
        Raw::new(&all.end()).unwrap_or_else(|_| Raw::null())
    }
}

/// Stands for the text of a sheet that is what it was.
const UNCHANGED: &str = "";

fn put<T: crate::ledger::Entry>(
    sheets: &mut BTreeMap<String, Option<String>>,
    name: String,
    kept: &Kept<T>,
    loaded: &BTreeSet<String>,
) {
    let is_unchanged = loaded.contains(&name) && matches!(kept, Kept::Stored(..));
    let text = if is_unchanged { UNCHANGED.to_owned() } else { kept.to_text() };
    sheets.insert(name, Some(text));
}

/// The keys of the settled effects but for the last.
fn settled_long_ago(document: &Document) -> Vec<String> {
    let settled = document.effects.iter().filter_map(|(key, kept)| {
        let effect = kept.get().filter(|effect| effect.is_settled())?;
        Some((effect.settle_seq.unwrap_or(Number::ZERO), key))
    });
    all_but_the_last(settled.collect())
}

/// The ids of ended runs but for the last, as far as they keep nobody out whom those that stay would let in.
fn ended_long_ago(document: &Document) -> Vec<String> {
    let ended: Vec<&Run> = document.runs().filter(|run| run.ended_at.is_some()).collect();
    let old = all_but_the_last(ended.iter().map(|run| (run.token, &run.run_id)).collect());
    let old: BTreeSet<String> = old.into_iter().collect();
    let stays: Vec<&&Run> = ended.iter().filter(|run| !old.contains(&run.run_id)).collect();
    let outranked = |run: &Run| !run.wrote || stays.iter().any(|other| other.outranks(run, document));
    let going = ended.iter().filter(|run| old.contains(&run.run_id) && outranked(run));
    going.map(|run| run.run_id.clone()).collect()
}

fn all_but_the_last(mut numbered: Vec<(Number, &String)>) -> Vec<String> {
    numbered.sort();
    let old = numbered.len().saturating_sub(RECENT);
    numbered.into_iter().take(old).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests;
