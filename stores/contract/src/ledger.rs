//! The laws of a store for ledgers of agents, as a suite any [`LedgerStore`] can be graded with.
//!
//! Say how a store is opened, and name the suite in a test file; every law becomes a `#[test]` of its own:
//!
//! ```
//! use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
//! use idempotency_store_memory::MemoryLedger; // or yours
//!
//! struct Mine;
//!
//! impl LedgerCandidate for Mine {
//!     type Store = MemoryLedger;
//!
//!     async fn open(&self) -> MemoryLedger {
//!         MemoryLedger::new()
//!     }
//! }
//!
//! ledger_contract!(Mine);
//! # fn main() {
//! #     idempotency_store_contract::ledger::prove(&Mine, "no_write_is_lost").unwrap();
//! # }
//! ```

use std::{future::Future, pin::Pin};

use idempotency_core::{Folio, LedgerStore, Motion, Revision};

use crate::{Grade, Violation, suite::block_on};

mod forgetting;
mod texts;
mod transactions;

use {forgetting::*, texts::*, transactions::*};

/// A ledger store that stands for its grade.
pub trait LedgerCandidate: Send + Sync + 'static {
    /// The store.
    type Store: LedgerStore;

    /// The store with nothing in it. Each law opens one.
    fn open(&self) -> impl Future<Output = Self::Store> + Send;

    /// Whether [`forget`](LedgerStore::forget) is how scopes go, and not the backend itself. They are unless this says
    /// otherwise.
    fn forgets(&self) -> bool {
        true
    }
}

/// A law's name, and how a candidate is graded by it.
type Law<C> = (&'static str, for<'a> fn(&'a C) -> Verdict<'a>);

type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send + 'a>>;

/// Grades `candidate` by the law called `name`; what the tests of [`ledger_contract!`](crate::ledger_contract) call.
///
/// # Errors
/// The [`Violation`] that was seen.
///
/// # Panics
/// When there is no law of that name.
pub fn prove<C: LedgerCandidate>(candidate: &C, name: &str) -> Result<(), Violation> {
    let law = laws::<C>().into_iter().find(|(law, _)| *law == name);
    let (_, check) = law.expect("the suite has a law of this name");
    block_on(check(candidate))
}

/// Grades `candidate` by every law, one after the other.
pub fn grade<C: LedgerCandidate>(candidate: &C) -> Vec<Grade> {
    let graded = |(law, check): Law<C>| Grade { law, result: block_on(check(candidate)) };
    laws().into_iter().map(graded).collect()
}

fn laws<C: LedgerCandidate>() -> Vec<Law<C>> {
    let laws: &[Law<C>] = crate::for_each_ledger_law!(ledger_law_table(C));
    laws.to_vec()
}

/// Expands every law of the suite to a `#[test]` of its own that grades `$candidate`.
#[macro_export]
macro_rules! ledger_contract {
    ($candidate:expr) => {
        $crate::for_each_ledger_law!(ledger_law_tests($candidate));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! for_each_ledger_law {
    ($callback:ident($arg:tt)) => {
        $crate::$callback! { $arg =>
            a_fresh_scope_is_blank,
            what_is_written_stands,
            a_law_that_keeps_writes_nothing,
            scopes_are_independent,
            odd_names_are_names,
            no_write_is_lost,
            one_of_many_is_first,
            sheets_are_read_and_written_one_by_one,
            a_law_may_ask_for_every_sheet,
            time_goes_on,
            nothing_unsettled_is_forgotten,
            forgetting_keeps_to_its_bound,
        }
    };
    ($callback:ident($arg:expr)) => {
        $crate::for_each_ledger_law!($callback({ $arg }));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! ledger_law_tests {
    ($candidate:tt => $($law:ident,)+) => {
        $(
            #[test]
            fn $law() -> ::std::result::Result<(), $crate::Violation> {
                $crate::ledger::prove(&$candidate, stringify!($law))
            }
        )+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! ledger_law_table {
    ($candidate:tt => $($law:ident,)+) => {
        &[$((stringify!($law), |candidate| Box::pin(async move { $law(candidate).await }))),+]
    };
}

/// A head that says `number`, as every backend gives it back.
fn head(number: u64) -> String {
    format!("{{\"n\": {number}}}")
}

/// What a head says.
fn number(folio: &Folio) -> u64 {
    let digits = |head: &String| head.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok();
    folio.head.as_ref().and_then(digits).unwrap_or(0)
}

fn revision(number: u64) -> Revision {
    Revision { head: head(number), sheets: [].into(), settled: true }
}

/// Writes `number`, and answers what stood there.
async fn write(store: &impl LedgerStore, scope: &str, number_: u64) -> Result<u64, Violation> {
    Ok(store.transact(scope, &[], |folio, _| Motion::Write(revision(number_), number(folio))).await?)
}
