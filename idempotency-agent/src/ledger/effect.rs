//! One side effect as it stands in a document.

use super::{Compat, Number, Raw, Terms, document::Entry};
use crate::json::{Members, ObjectWriter};

/// Where an effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// An attempt runs, or ran and never said how it ended.
    Pending,
    /// It happened.
    Committed,
    /// It did not happen.
    Failed,
    /// Nobody knows.
    Ambiguous,
}

impl Status {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Committed => "committed",
            Self::Failed => "failed",
            Self::Ambiguous => "ambiguous",
        }
    }

    fn read(name: &str) -> Option<Self> {
        [Self::Pending, Self::Committed, Self::Failed, Self::Ambiguous]
            .into_iter()
            .find(|status| status.name() == name)
    }

    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Committed | Self::Failed)
    }
}

/// A side effect under its key. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// Its key within the scope.
    pub key: String,
    /// Its scope.
    pub scope: String,
    /// What kind of effect it is.
    pub intent: String,
    /// Where it is. [`effective_status`](Self::effective_status) also knows of time.
    pub status: Status,
    /// Which attempt this is, from 1.
    pub attempt: Number,
    /// The name of the attempt.
    pub attempt_id: String,
    /// The run that attempted it; none outside of runs.
    pub run_id: Option<String>,
    /// The token of that run then.
    pub token: Option<Number>,
    /// What it does, in words for a model or a person.
    pub summary: Option<String>,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// When its key was first claimed.
    pub created_at: Number,
    /// When this attempt was.
    pub claimed_at: Number,
    /// When it was settled.
    pub settled_at: Option<Number>,
    /// The tick of its claim.
    pub claim_seq: Number,
    /// The tick of its settling.
    pub settle_seq: Option<Number>,
    /// What it came to, once committed with a result.
    pub result: Option<Raw>,
    pub(super) rest: Members,
}

/// When an attempt is abandoned, by its own word: others' terms may be longer or shorter.
const DEADLINE: &str = "deadlineAt";
/// Whether an attempt that marks its point of no return has passed it.
const SENT: &str = "sent";
/// Until when somebody finds out how it ended.
const RECONCILING: &str = "reconcilingUntil";
/// The digest of all that an attempt was asked to do.
const PAYLOAD: &str = "payloadHash";
/// How long the result was that was not kept, in bytes.
const NOT_KEPT: &str = "resultNotKept";

impl Effect {
    /// Where it is at `now`: an attempt that is abandoned is ambiguous, or failed if it had not yet passed its point of no
    /// return.
    pub fn effective_status(&self, now: Number, terms: &Terms) -> Status {
        match self.status {
            Status::Pending if self.is_abandoned(now, terms) => match self.is_unsent(terms) {
                true => Status::Failed,
                false => Status::Ambiguous,
            },
            Status::Ambiguous if self.is_unsent(terms) => Status::Failed,
            status => status,
        }
    }

    /// As it stands in a document.
    pub fn to_json(&self) -> Raw {
        Raw::new(&self.to_text()).unwrap_or_else(|_| Raw::null())
    }

    /// Whether its attempt was given the time it had and never settled.
    pub(super) fn is_abandoned(&self, now: Number, terms: &Terms) -> bool {
        self.status == Status::Pending && self.is_overdue(now, terms)
    }

    fn is_overdue(&self, now: Number, terms: &Terms) -> bool {
        match self.deadline(terms) {
            Some(deadline) => deadline <= now,
            None => now - self.claimed_at >= terms.pending_ttl,
        }
    }

    /// When its attempt is, or was, abandoned.
    pub(super) fn abandoned_at(&self, terms: &Terms) -> Number {
        self.deadline(terms).unwrap_or(self.claimed_at + terms.pending_ttl)
    }

    fn deadline(&self, terms: &Terms) -> Option<Number> {
        self.rest.get(DEADLINE).filter(|_| !terms.is_strict()).and_then(Raw::to_number)
    }

    /// Whether its attempt marks its point of no return and had not come to it.
    pub(super) fn is_unsent(&self, terms: &Terms) -> bool {
        !terms.is_strict() && self.rest.get(SENT).is_some_and(|sent| sent.as_str() == "false")
    }

    pub(super) fn reconciled_until(&self) -> Option<Number> {
        self.rest.get(RECONCILING).and_then(Raw::to_number)
    }

    /// Whether it is known to have been asked for with another payload than one with the digest `payload`.
    pub(super) fn has_other_payload(&self, payload: Option<&str>) -> bool {
        let own = self.rest.get(PAYLOAD).and_then(Raw::to_text);
        payload.zip(own).is_some_and(|(payload, own)| payload != own)
    }

    pub(super) fn set_payload(&mut self, payload: &str) {
        let payload = Raw::of(payload).unwrap_or_else(|_| Raw::null());
        self.rest.insert(PAYLOAD.to_owned(), payload);
    }

    pub(super) fn set_deadline(&mut self, at: Number) {
        self.rest.insert(DEADLINE.to_owned(), raw_number(at));
    }

    pub(super) fn set_sent(&mut self, sent: Sent) {
        let sent = if sent == Sent::Yes { "true" } else { "false" };
        self.rest.insert(SENT.to_owned(), Raw::new(sent).unwrap_or_else(|_| Raw::null()));
    }

    pub(super) fn set_reconciling(&mut self, until: Number) {
        self.rest.insert(RECONCILING.to_owned(), raw_number(until));
    }

    /// How long its result was, in bytes, if that was too long to be kept: what it came to is not known any more.
    pub fn result_not_kept(&self) -> Option<u64> {
        self.rest.get(NOT_KEPT).and_then(Raw::to_number).map(Number::as_u64)
    }

    /// Records what it came to, or how long that was if that is longer than what is kept. The original keeps everything.
    pub(super) fn keep_result(&mut self, result: Raw, terms: &Terms) {
        if terms.is_strict() {
            self.result = Some(result);
            return;
        }
        let result = result.without_nul();
        let length = result.as_str().len();
        if length > terms.max_result {
            let length = Number::from(u64::try_from(length).unwrap_or(u64::MAX));
            self.result = None;
            self.rest.insert(NOT_KEPT.to_owned(), raw_number(length));
        } else {
            self.result = Some(result);
            self.rest.shift_remove(NOT_KEPT);
        }
    }

    /// Whether it is settled for good.
    pub(crate) const fn is_settled(&self) -> bool {
        self.status.is_final()
    }

    /// Whether it is settled for good and was so before `horizon`.
    pub(crate) fn is_past(&self, horizon: Number) -> bool {
        self.status.is_final() && self.settled_at.unwrap_or(self.claimed_at) < horizon
    }
}

/// Whether a point of no return was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    NotYet,
    Yes,
}

pub(super) fn raw_number(number: Number) -> Raw {
    Raw::new(&number.to_string()).unwrap_or_else(|_| Raw::null())
}

impl Entry for Effect {
    fn read(mut members: Members) -> Option<Self> {
        let mut text =
            |name: &str| members.shift_remove(name).and_then(|raw| Some(raw.to_text()?.into_owned()));
        let status = Status::read(&text("status")?)?;
        let attempt_id = text("attemptId")?;
        let [key, scope, intent] = ["key", "scope", "intent"].map(|name| text(name).unwrap_or_default());
        let [run_id, summary, error] = ["runId", "summary", "error"].map(text);
        let mut number = |name: &str| members.shift_remove(name).and_then(|raw| raw.to_number());
        let claimed_at = number("claimedAt")?;
        Some(Self {
            key,
            scope,
            intent,
            status,
            attempt: number("attempt").unwrap_or(Number::ONE),
            attempt_id,
            run_id,
            token: number("token"),
            summary,
            error,
            created_at: number("createdAt").unwrap_or(claimed_at),
            claimed_at,
            settled_at: number("settledAt"),
            claim_seq: number("claimSeq").unwrap_or(Number::ZERO),
            settle_seq: number("settleSeq"),
            result: members.shift_remove("result"),
            rest: members,
        })
    }

    fn to_text(&self) -> String {
        let mut all = ObjectWriter::new();
        all.text("key", &self.key)
            .text("scope", &self.scope)
            .text("intent", &self.intent)
            .text("status", self.status.name())
            .number("attempt", self.attempt)
            .text("attemptId", &self.attempt_id)
            .maybe_text("runId", self.run_id.as_deref())
            .maybe_number("token", self.token)
            .maybe_text("summary", self.summary.as_deref())
            .maybe_text("error", self.error.as_deref())
            .number("createdAt", self.created_at)
            .number("claimedAt", self.claimed_at)
            .maybe_number("settledAt", self.settled_at)
            .number("claimSeq", self.claim_seq)
            .maybe_number("settleSeq", self.settle_seq);
        if let Some(result) = &self.result {
            all.raw("result", result.as_str());
        }
        all.members(&self.rest).end()
    }
}

/// The longest summary.
const SUMMARY: usize = 2_000;
/// The longest error.
const ERROR: usize = 500;

/// A summary as a document holds it.
pub(super) fn summary(text: &str, compat: Compat) -> String {
    cut(text, SUMMARY, compat)
}

/// An error as a document holds it.
pub(super) fn error(text: &str, compat: Compat) -> String {
    match compat {
        Compat::Mended => cut(text, ERROR, compat),
        Compat::Strict => text.to_owned(), // the original's law leaves that to its caller
    }
}

/// The beginning of `text`. The original counts characters; languages that count UTF-16 units would cut what it wrote once
/// more, perhaps in the middle of a pair, so the mended law stays within `most` of those and leaves out what not every
/// store can hold.
fn cut(text: &str, most: usize, compat: Compat) -> String {
    match compat {
        Compat::Strict => text.chars().take(most).collect(),
        Compat::Mended => {
            let mut units = 0;
            let fits = |c: &char| {
                units += c.len_utf16();
                units <= most
            };
            text.chars().filter(|c| *c != '\0').take_while(fits).collect()
        }
    }
}
