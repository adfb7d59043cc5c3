//! One unit of work on a scope as it stands in a document, and which of two goes before the other.

use super::{Busy, Document, Number, Status, Terms, document::Entry};
use crate::json::{Members, ObjectWriter, Raw};

/// The reason of a run that was withdrawn.
pub(super) const CANCELLED: &str = "cancelled";

/// How runs of one scope live together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RunMode {
    /// The newer run fences the older one: for whoever answers what was said last.
    #[default]
    Supersede,
    /// A run begins only while no other lives: for whoever must not be overtaken.
    Exclusive,
}

impl RunMode {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supersede => "supersede",
            Self::Exclusive => "exclusive",
        }
    }
}

/// A run. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Its id: the job's, or the message's.
    pub run_id: String,
    /// Its token, another for each delivery.
    pub token: Number,
    /// How it lives with others.
    pub mode: RunMode,
    /// When it was first delivered.
    pub started_at: Number,
    /// What its place in line is decided by.
    pub order_at: Number,
    /// Until when it lives unless it is renewed.
    pub lease_expires_at: Number,
    /// Up to which tick it has seen what others did.
    pub seen_seq: Number,
    /// When it last looked.
    pub seen_at: Number,
    /// When what it read was read, until it looks again.
    pub context_at: Option<Number>,
    /// The tick of its creation.
    pub base_seq: Number,
    /// When what it read at its creation was read.
    pub base_context_at: Option<Number>,
    /// Whether it has claimed an effect.
    pub wrote: bool,
    /// When it ended.
    pub ended_at: Option<Number>,
    /// Why it ended.
    pub end_reason: Option<String>,
    pub(super) rest: Members,
}

/// Whether an effect that left the document, and had been the run's, had happened.
const LANDED: &str = "landed";

impl Run {
    /// As it stands in a document.
    pub fn to_json(&self) -> Raw {
        Raw::new(&self.to_text()).unwrap_or_else(|_| Raw::null())
    }

    pub(super) fn is_live(&self, now: Number) -> bool {
        self.ended_at.is_none() && self.lease_expires_at > now
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.end_reason.as_deref() == Some(CANCELLED)
    }

    /// Whether it ended, or was left, before `horizon`.
    pub(crate) fn is_past(&self, horizon: Number) -> bool {
        self.ended_at.unwrap_or(self.lease_expires_at) < horizon
    }

    fn is_newer_than(&self, other: &Self) -> bool {
        let both_exclusive = self.mode == RunMode::Exclusive && other.mode == RunMode::Exclusive;
        if both_exclusive {
            self.token > other.token
        } else if self.order_at != other.order_at {
            self.order_at > other.order_at
        } else {
            // Two that read at the same time are peers: neither knows less than the other.
            let is_peer = self.base_context_at.is_some() || other.base_context_at.is_some();
            !is_peer && self.base_seq > other.base_seq
        }
    }

    /// Whether some other run has taken its place.
    pub(super) fn is_superseded(&self, document: &Document, now: Number, terms: &Terms) -> bool {
        let others = document.runs().filter(|run| run.run_id != self.run_id);
        others.filter(|run| run.is_newer_than(self)).any(|run| run.fences(document, now, terms))
    }

    /// Whether it keeps older runs from writing.
    ///
    /// In the original every claim counts, also of an effect that then failed, and a cancelled run's counts for nothing,
    /// also of an effect that happened. Mended, what counts is whether something may have happened.
    fn fences(&self, document: &Document, now: Number, terms: &Terms) -> bool {
        if terms.is_strict() {
            return !self.is_cancelled() && (self.wrote || self.is_live(now));
        }
        self.is_live(now) || (self.wrote && self.may_have_landed(document, now, terms))
    }

    /// Whether everybody whom `other` keeps out this run keeps out as well, both having ended, for at least as long.
    pub(crate) fn outranks(&self, other: &Self, document: &Document) -> bool {
        let landed = self.landed() == Some(true)
            || document.effects().any(|effect| {
                effect.run_id.as_ref() == Some(&self.run_id)
                    && matches!(effect.status, Status::Committed | Status::Ambiguous)
            });
        self.wrote
            && landed
            && self.mode == other.mode
            && self.token > other.token
            && self.order_at > other.order_at
            && self.ended_at >= other.ended_at
    }

    fn may_have_landed(&self, document: &Document, now: Number, terms: &Terms) -> bool {
        let mut own =
            document.effects().filter(|effect| effect.run_id.as_ref() == Some(&self.run_id)).peekable();
        let knows_of_none = own.peek().is_none();
        self.landed().unwrap_or(knows_of_none)
            || own.any(|effect| effect.effective_status(now, terms) != Status::Failed)
    }

    /// Whether something of it happened or is in doubt, so that older runs are kept out for good.
    fn has_landed(&self, document: &Document, now: Number, terms: &Terms) -> bool {
        let mut own =
            document.effects().filter(|effect| effect.run_id.as_ref() == Some(&self.run_id)).peekable();
        let knows_of_none = own.peek().is_none();
        let is_there = |status| matches!(status, Status::Committed | Status::Ambiguous);
        self.wrote
            && (self.landed().unwrap_or(knows_of_none)
                || own.any(|effect| is_there(effect.effective_status(now, terms))))
    }

    pub(super) fn landed(&self) -> Option<bool> {
        match self.rest.get(LANDED)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub(super) fn set_landed(&mut self, landed: bool) {
        let landed = Raw::of(&landed).unwrap_or_else(|_| Raw::null());
        self.rest.insert(LANDED.to_owned(), landed);
    }

    /// It has looked, and seen everything up to the tick `seq`.
    pub(super) fn see(&mut self, seq: Number, now: Number) {
        self.seen_seq = self.seen_seq.max(seq);
        self.seen_at = self.seen_at.max(now);
        self.context_at = None;
    }

    pub(super) fn extend(&mut self, until: Number) {
        self.lease_expires_at = self.lease_expires_at.max(until);
    }
}

/// Who has taken a run's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Superseder {
    /// A newer run that did something, or may have: the older one has no place any more.
    Landed,
    /// One that did nothing yet. Should it come to nothing, the older one finds the way free.
    Lives(Busy),
}

impl Superseder {
    /// The one of the run `run_id`; none where no newer run is known any more.
    pub(crate) fn of(run_id: &str, document: &Document, now: Number, terms: &Terms) -> Option<Self> {
        let run = document.run(run_id)?;
        let others = document.runs().filter(|other| other.run_id != run_id && other.is_newer_than(run));
        let newer: Vec<_> = others.collect();
        if newer.iter().any(|other| other.has_landed(document, now, terms)) {
            return Some(Self::Landed);
        }
        newer.into_iter().max_by_key(|other| other.lease_expires_at).map(|run| Self::Lives(Busy::of(run)))
    }
}

impl Entry for Run {
    fn read(mut members: Members) -> Option<Self> {
        let mut text =
            |name: &str| members.shift_remove(name).and_then(|raw| Some(raw.to_text()?.into_owned()));
        let run_id = text("runId")?;
        let mode =
            if text("mode")? == RunMode::Exclusive.name() { RunMode::Exclusive } else { RunMode::Supersede };
        let end_reason = text("endReason");
        let wrote = members.shift_remove("wrote").is_some_and(|wrote| wrote.as_str() == "true");
        let mut number = |name: &str| members.shift_remove(name).and_then(|raw| raw.to_number());
        let (token, started_at) = (number("token")?, number("startedAt")?);
        Some(Self {
            run_id,
            token,
            mode,
            started_at,
            order_at: number("orderAt").unwrap_or(started_at),
            lease_expires_at: number("leaseExpiresAt").unwrap_or(started_at),
            seen_seq: number("seenSeq").unwrap_or(Number::ZERO),
            seen_at: number("seenAt").unwrap_or(started_at),
            context_at: number("contextAt"),
            base_seq: number("baseSeq").unwrap_or(Number::ZERO),
            base_context_at: number("baseContextAt"),
            wrote,
            ended_at: number("endedAt"),
            end_reason,
            rest: members,
        })
    }

    fn to_text(&self) -> String {
        let mut all = ObjectWriter::new();
        all.text("runId", &self.run_id)
            .number("token", self.token)
            .text("mode", self.mode.name())
            .number("startedAt", self.started_at)
            .number("orderAt", self.order_at)
            .number("leaseExpiresAt", self.lease_expires_at)
            .number("seenSeq", self.seen_seq)
            .number("seenAt", self.seen_at)
            .maybe_number("contextAt", self.context_at)
            .number("baseSeq", self.base_seq)
            .maybe_number("baseContextAt", self.base_context_at)
            .raw("wrote", if self.wrote { "true" } else { "false" })
            .maybe_number("endedAt", self.ended_at)
            .maybe_text("endReason", self.end_reason.as_deref())
            .members(&self.rest)
            .end()
    }
}
