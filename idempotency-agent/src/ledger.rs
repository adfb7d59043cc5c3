//! The law of a scope: pure functions from a document, an input and the time to the next document and a verdict.
//!
//! A scope has one [`Document`]: its *runs*, units of work that fence one another, and its *effects*, side effects under
//! their keys. Every function here takes the whole document as it was read, and answers a [`Step`]: the document to write,
//! or none to leave untouched what stands, and the verdict. Stores call them within one atomic read-modify-write, as often
//! as they have to, so they do nothing else.
//!
//! Three counters order everything: `seq` ticks once a write, `tokenSeq` hands out the tokens by which a later delivery of
//! a run fences an earlier one, and a run remembers up to which tick it has seen what others did. Times are milliseconds
//! since the Unix epoch.
//!
//! [`Compat::Strict`] is the law of replyonce 0.1.3 to the letter, kept to compare with it. [`Compat::Mended`], the
//! default, reads and writes the same documents and differs where the original is wrong; each place says so.

mod begin;
mod claim;
mod conflict;
mod document;
mod effect;
mod lifecycle;
mod reading;
mod run;
mod settle;

pub use begin::{Begin, BeginState, Begun, Busy, begin};
pub use claim::{Asker, Claim, Claimed, RefusalReason, claim};
pub use conflict::{Conflict, ConflictMode, Conflicts};
pub use document::{Document, DocumentError};
pub(crate) use document::{Entry, Kept};
pub use effect::{Effect, Status};
pub use lifecycle::{End, Renew, RenewRefused, end, renew};
pub use reading::{Checked, check, history};
pub(crate) use run::Superseder;
pub use run::{Run, RunMode};
pub use settle::{
    Pass, Reconcile, Resolution, Resolve, Settle, Settled, Verdict, give_up_reconciling, pass, reconcile,
    resolve, settle,
};

pub use crate::json::{Number, Raw};

/// Why an entry became ambiguous without its attempt having said so.
const ABANDONED: &str = "abandoned: not settled within pendingTtlMs";
/// Why an entry in doubt became one that failed.
const NOT_APPLIED: &str = "reconciled: not applied";

/// Whether the law is the original's or the mended one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// The original's faults are mended; documents stay the same.
    #[default]
    Mended,
    /// What replyonce 0.1.3 does, its faults included. To compare with it, not to work with.
    Strict,
}

/// The bounds a law decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long an attempt may stay unsettled before it counts as abandoned, in milliseconds.
    pub pending_ttl: Number,
    /// How often a key may be attempted.
    pub max_attempts: Number,
    /// How long what is settled, and what ended, is remembered, in milliseconds.
    pub retention: Number,
    /// The longest result that is kept, in bytes of its JSON text.
    pub max_result: usize,
    /// Whose law.
    pub compat: Compat,
}

impl Terms {
    const fn is_strict(&self) -> bool {
        matches!(self.compat, Compat::Strict)
    }
}

/// What one input does: the document to write, if any, and what to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Step<V> {
    /// The document after the input; `None` leaves what stands there untouched.
    pub write: Option<Document>,
    /// The answer.
    pub verdict: V,
}

impl<V> Step<V> {
    const fn unchanged(verdict: V) -> Self {
        Self { write: None, verdict }
    }

    const fn write(document: Document, verdict: V) -> Self {
        Self { write: Some(document), verdict }
    }
}
