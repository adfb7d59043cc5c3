//! The list of laws about broken lines, and the ways to run it.

use std::{fmt, pin::Pin};

use super::{Wired, laws::*, line::Line};
use crate::{Grade, Violation, suite::block_on};

type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send + 'a>>;

/// Expands every law about broken lines to a `#[test]` of its own that grades `$wired`.
///
/// Put two of one file into two modules, since the tests bear the names of the laws.
#[macro_export]
macro_rules! wire_faults {
    ($wired:expr) => {
        $crate::for_each_wire_law!(wire_law_tests($wired));
    };
}

/// One law about broken lines, for one kind of store.
pub struct WireLaw<W> {
    /// The law in a few words: the name of its function and of its test.
    pub name: &'static str,
    run: for<'a> fn(&'a W, &'a str) -> Verdict<'a>,
}

impl<W: Wired> WireLaw<W> {
    /// The suite.
    pub const ALL: &'static [Self] = crate::for_each_wire_law!(wire_law_table(W));

    /// Grades `wired` by this law.
    ///
    /// # Errors
    /// The [`Violation`] that was seen. Without a server there is none.
    pub async fn check(&self, wired: &W) -> Result<(), Violation> {
        match wired.server() {
            Some(server) => (self.run)(wired, &server).await,
            None => Ok(()),
        }
    }
}

impl<W> fmt::Debug for WireLaw<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WireLaw").field(&self.name).finish()
    }
}

/// Grades `wired` by every law about broken lines, one after the other.
pub fn grade<W: Wired>(wired: &W) -> Vec<Grade> {
    let laws = WireLaw::<W>::ALL.iter();
    laws.map(|law| Grade { law: law.name, result: block_on(law.check(wired)) }).collect()
}

/// Grades `wired` by the law called `name`; what the tests of [`wire_faults!`] call.
///
/// # Errors
/// The [`Violation`] that was seen.
///
/// # Panics
/// When there is no law of that name.
pub fn prove<W: Wired>(wired: &W, name: &str) -> Result<(), Violation> {
    let law = WireLaw::<W>::ALL.iter().find(|law| law.name == name);
    block_on(law.expect("the suite has a law of this name").check(wired))
}

#[doc(hidden)]
#[macro_export]
macro_rules! for_each_wire_law {
    ($callback:ident($arg:expr)) => {
        $crate::$callback! { $arg =>
            fate::request_that_never_arrived_wrote_nothing,
            fate::lost_reply_leaves_the_fate_unknown,
            fate::reply_cut_short_is_no_answer,
            fate::late_request_is_not_called_unwritten,
            engine::lost_grant_locks_no_key,
            engine::abandoned_claim_locks_no_key,
            engine::lost_completion_is_stored_in_the_end,
            engine::completion_is_tried_again_under_a_renewed_lease,
            engine::silent_server_holds_no_caller,
            recovery::line_that_is_whole_again_is_used,
            recovery::silent_connection_is_left,
            recovery::slow_line_changes_no_verdict,
            dropped::dropped_calls_disturb_no_other,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! wire_law_tests {
    ($wired:expr => $($module:ident :: $law:ident,)+) => {
        $(
            #[test]
            fn $law() -> ::std::result::Result<(), $crate::Violation> {
                $crate::wire::prove(&$wired, stringify!($law))
            }
        )+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! wire_law_table {
    ($wired:expr => $($module:ident :: $law:ident,)+) => {
        &[$(WireLaw {
            name: stringify!($law),
            run: |wired, server| Box::pin(async move { $module::$law(Line::open(wired, server).await?).await }),
        }),+]
    };
}
