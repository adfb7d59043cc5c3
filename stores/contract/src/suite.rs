//! The list of laws, and the ways to run it.
//!
//! One macro owns the list. The table of laws and the test functions are both made from it, so neither can hold a
//! law the other does not.

use std::{fmt, future::Future, pin::Pin};

use crate::{Candidate, Violation, history, laws::*, scene::Scene};

type Verdict<'a> = Pin<Box<dyn Future<Output = Result<(), Violation>> + Send + 'a>>;

/// Expands every law of the suite to a `#[test]` of its own that grades `$candidate`.
///
/// Put two candidates of one file into two modules, since the tests bear the names of the laws.
#[macro_export]
macro_rules! store_contract {
    ($candidate:expr) => {
        $crate::for_each_law!(law_tests($candidate));
    };
}

/// One law of the suite, for one kind of candidate.
pub struct Law<C> {
    /// The law in a few words: the name of its function and of its test.
    pub name: &'static str,
    run: for<'a> fn(&'a C) -> Verdict<'a>,
}

impl<C: Candidate> Law<C> {
    /// The suite.
    pub const ALL: &'static [Self] = crate::for_each_law!(law_table(C));

    /// Grades a fresh store of `candidate` by this law.
    ///
    /// # Errors
    /// The [`Violation`] that was seen.
    pub async fn check(&self, candidate: &C) -> Result<(), Violation> {
        (self.run)(candidate).await
    }
}

impl<C> fmt::Debug for Law<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Law").field(&self.name).finish()
    }
}

/// How a candidate stands under one law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grade {
    /// The name of the law.
    pub law: &'static str,
    /// Whether the store keeps it.
    pub result: Result<(), Violation>,
}

/// Grades `candidate` by every law, one after the other.
pub fn grade<C: Candidate>(candidate: &C) -> Vec<Grade> {
    grade_laws(candidate, |_| true)
}

/// Grades `candidate` by the laws whose name is `selected`.
pub fn grade_laws<C: Candidate>(candidate: &C, selected: impl Fn(&str) -> bool) -> Vec<Grade> {
    let chosen = Law::<C>::ALL.iter().filter(|law| selected(law.name));
    chosen.map(|law| Grade { law: law.name, result: block_on(law.check(candidate)) }).collect()
}

/// Grades `candidate` by the law called `name`; what the tests of [`store_contract!`] call.
///
/// # Errors
/// The [`Violation`] that was seen.
///
/// # Panics
/// When there is no law of that name.
pub fn prove<C: Candidate>(candidate: &C, name: &str) -> Result<(), Violation> {
    let law = Law::<C>::ALL.iter().find(|law| law.name == name);
    block_on(law.expect("the suite has a law of this name").check(candidate))
}

/// Runs a future to its end, on a runtime of several threads.
///
/// # Panics
/// When the operating system gives no threads.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("the operating system gives threads").block_on(future)
}

#[doc(hidden)]
#[macro_export]
macro_rules! for_each_law {
    ($callback:ident($arg:expr)) => {
        $crate::$callback! { $arg =>
            grants::first_claim_is_attempt_one,
            grants::fence_rises_with_each_grant,
            grants::takeover_is_the_next_attempt,
            grants::second_holder_sees_the_lease_left,
            grants::lost_claim_reply_is_adopted,
            grants::delayed_copy_of_a_released_claim_is_ended,
            grants::mismatch_names_the_parts_and_writes_nothing,
            grants::addresses_are_independent,
            secrets::payload_under_the_previous_secret_is_the_same,
            secrets::takeover_records_the_current_secret,
            secrets::mismatch_is_told_under_the_previous_secret_too,
            secrets::record_under_an_unknown_secret_is_refused,
            renewal::renewal_extends_and_never_shortens,
            renewal::lapsed_lease_may_be_renewed,
            renewal::foreign_or_ended_lease_is_not_renewed,
            endings::first_completion_stands,
            endings::lapsed_lease_may_still_end,
            endings::taken_over_lease_ends_nothing,
            endings::stale_completion_misses_a_later_claim,
            endings::release_frees_the_key_for_any_payload,
            endings::ending_compares_the_holder_alone,
            endings::absent_record_ends_nothing,
            outcomes::outcomes_come_back_byte_for_byte,
            outcomes::tombstones_stay_tombstones,
            outcomes::longest_outcome_fits_and_one_byte_more_does_not,
            doubt::unknown_release_is_in_doubt_until_ended,
            doubt::held_lapse_is_in_doubt_without_a_write,
            doubt::resolution_names_the_doubt_by_its_fence,
            doubt::resolution_answers_or_frees,
            retention::completed_answers_then_expires_then_is_new,
            retention::abandoned_key_is_new_after_its_retention,
            retention::live_lease_outlasts_its_retention,
            retention::times_are_past_when_they_come,
            retention::look_foretells_a_claim_and_writes_nothing,
            purge::purge_removes_what_is_over_and_keeps_the_rest,
            purge::purge_spares_what_is_held_or_in_doubt,
            purge::purge_keeps_to_its_bound,
            bounds::endless_durations_do_not_overflow,
            bounds::empty_durations_end_at_once,
            inspect::record_is_found_as_it_was_claimed,
            inspect::listing_pages_in_the_order_of_addresses,
            inspect::listing_in_doubt_shows_doubt_alone,
            race::one_of_fifty_wins_a_fresh_key,
            race::one_of_fifty_wins_a_lapsed_key,
            race::one_of_fifty_wins_an_expired_key,
            race::copies_of_one_claim_share_one_grant,
            history::sequential_history_agrees_with_the_machine,
            history::concurrent_history_grants_one_at_a_time,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! law_tests {
    ($candidate:expr => $($module:ident :: $law:ident,)+) => {
        $(
            #[test]
            fn $law() -> ::std::result::Result<(), $crate::Violation> {
                $crate::prove(&$candidate, stringify!($law))
            }
        )+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! law_table {
    ($candidate:expr => $($module:ident :: $law:ident,)+) => {
        &[$(Law {
            name: stringify!($law),
            run: |candidate| Box::pin(async move { $module::$law(Scene::open(candidate).await).await }),
        }),+]
    };
}
