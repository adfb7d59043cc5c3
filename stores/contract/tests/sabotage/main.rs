//! The suite is worth what it refuses: stores that are wrong in one way each, and the laws that find them out.
//!
//! Every flaw must fail exactly the laws named here, and the histories besides.

mod flaw;
mod flawed;
mod payload;
mod reference;

use std::{collections::BTreeSet, sync::Arc};

use flaw::Flaw;
use flawed::Flawed;
use idempotency_core::clock::{ManualClock, Timestamp};
use idempotency_store_contract::{Bench, Candidate, Expiry, Time, grade, store_contract};
use reference::Reference;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)))
}

/// The store every flaw is made from keeps every law.
mod without_a_flaw {
    use super::*;

    struct Right;

    impl Candidate for Right {
        type Store = Reference;

        async fn open(&self) -> Bench<Reference> {
            let clock = clock();
            Bench { store: Arc::new(Reference::new(clock.clone())), time: Time::Manual(clock) }
        }
    }

    store_contract!(Right);
}

struct Wrong(Flaw);

impl Candidate for Wrong {
    type Store = Flawed;

    async fn open(&self) -> Bench<Flawed> {
        let clock = clock();
        let store = Flawed { right: Reference::new(clock.clone()), flaw: self.0 };
        Bench { store: Arc::new(store), time: Time::Manual(clock) }
    }

    fn expiry(&self) -> Expiry {
        if self.0 == Flaw::ExpiresByItself { Expiry::Native } else { Expiry::Purged }
    }

    fn steps(&self) -> u32 {
        20_000
    }
}

const SEQUENTIAL: &str = "sequential_history_agrees_with_the_machine";
const CONCURRENT: &str = "concurrent_history_grants_one_at_a_time";

fn broken_laws(flaw: Flaw) -> BTreeSet<&'static str> {
    grade(&Wrong(flaw)).into_iter().filter(|grade| grade.result.is_err()).map(|grade| grade.law).collect()
}

/// The flaw breaks these laws and no other, and the sequential history finds it too.
fn breaks(flaw: Flaw, laws: &[&str]) {
    let mut broken = broken_laws(flaw);
    assert!(broken.remove(SEQUENTIAL), "the history does not find {flaw:?}; {broken:?} do");
    broken.remove(CONCURRENT);
    assert_eq!(broken, laws.iter().copied().collect(), "what {flaw:?} breaks");
}

macro_rules! flaws {
    ($($flaw:ident breaks [$($law:ident),+ $(,)?];)+) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $flaw() {
                breaks(Flaw::$flaw, &[$(stringify!($law)),+]);
            }
        )+
    };
}

#[test]
fn a_backend_may_expire_records_by_itself() {
    assert_eq!(broken_laws(Flaw::ExpiresByItself), BTreeSet::new());
}

/// No single holder sees this flaw: it takes two at once.
#[test]
fn read_then_write_is_found_by_every_race() {
    let wanted = [
        "one_of_fifty_wins_a_fresh_key",
        "one_of_fifty_wins_a_lapsed_key",
        "one_of_fifty_wins_an_expired_key",
        CONCURRENT,
    ];
    assert_eq!(broken_laws(Flaw::ReadThenWrite), wanted.into_iter().collect());
}

/// No history sends outcomes that long.
#[test]
fn an_outcome_cut_short_is_found_by_the_law_of_its_length() {
    let wanted = ["longest_outcome_fits_and_one_byte_more_does_not"];
    assert_eq!(broken_laws(Flaw::TooLargeIsCut), wanted.into_iter().collect());
}

flaws! {
    FenceRestartsAfterRelease breaks [fence_rises_with_each_grant];
    FenceIgnoresTheClock breaks [first_claim_is_attempt_one, fence_rises_with_each_grant];
    AttemptIsNotCounted breaks [takeover_is_the_next_attempt];
    ReplyIsNotAdopted breaks [
        lost_claim_reply_is_adopted,
        copies_of_one_claim_share_one_grant,
        payload_under_the_previous_secret_is_the_same,
    ];
    AdoptionShortens breaks [lost_claim_reply_is_adopted];
    DelayedCopyIsGranted breaks [delayed_copy_of_a_released_claim_is_ended];
    MismatchOverwrites breaks [
        mismatch_names_the_parts_and_writes_nothing,
        record_under_an_unknown_secret_is_refused,
    ];
    MismatchNamesNothing breaks [
        mismatch_names_the_parts_and_writes_nothing,
        record_under_an_unknown_secret_is_refused,
        mismatch_is_told_under_the_previous_secret_too,
    ];
    PreviousIsIgnored breaks [
        payload_under_the_previous_secret_is_the_same,
        takeover_records_the_current_secret,
        mismatch_is_told_under_the_previous_secret_too,
    ];
    PreviousIsTrusted breaks [
        mismatch_is_told_under_the_previous_secret_too,
        record_under_an_unknown_secret_is_refused,
    ];
    AdoptionRewritesThePayload breaks [payload_under_the_previous_secret_is_the_same];
    TakeoverKeepsThePayload breaks [takeover_records_the_current_secret];
    AddressIsCut breaks [
        addresses_are_independent,
        listing_pages_in_the_order_of_addresses,
        listing_in_doubt_shows_doubt_alone,
    ];
    CompletionIsUnfenced breaks [taken_over_lease_ends_nothing, stale_completion_misses_a_later_claim];
    EndingComparesTheFence breaks [ending_compares_the_holder_alone];
    LapsedCompletionIsRefused breaks [lapsed_lease_may_still_end];
    SecondCompletionOverwrites breaks [first_completion_stands];
    RepeatedReleaseIsRefused breaks [release_frees_the_key_for_any_payload];
    ReleaseForgets breaks [
        stale_completion_misses_a_later_claim,
        delayed_copy_of_a_released_claim_is_ended,
        ending_compares_the_holder_alone,
        endless_durations_do_not_overflow,
        fence_rises_with_each_grant,
        first_claim_is_attempt_one,
        foreign_or_ended_lease_is_not_renewed,
        purge_keeps_to_its_bound,
        purge_removes_what_is_over_and_keeps_the_rest,
        release_frees_the_key_for_any_payload,
        resolution_answers_or_frees,
        times_are_past_when_they_come,
    ];
    RenewalShortens breaks [renewal_extends_and_never_shortens];
    LapsedRenewalIsRefused breaks [lapsed_lease_may_be_renewed];
    RenewalIsUnfenced breaks [foreign_or_ended_lease_is_not_renewed];
    BytesAreText breaks [outcomes_come_back_byte_for_byte];
    MediaIsOneByte breaks [outcomes_come_back_byte_for_byte];
    TombstoneIsLost breaks [tombstones_stay_tombstones];
    DurationsWrap breaks [endless_durations_do_not_overflow];
    HoldIsTakenOver breaks [
        held_lapse_is_in_doubt_without_a_write,
        times_are_past_when_they_come,
        payload_under_the_previous_secret_is_the_same,
    ];
    LapseIsWritten breaks [held_lapse_is_in_doubt_without_a_write];
    DoubtEndsAsReleased breaks [unknown_release_is_in_doubt_until_ended];
    ResolutionKeepsTheHolder breaks [resolution_answers_or_frees];
    ResolutionIgnoresTheFence breaks [resolution_names_the_doubt_by_its_fence];
    LookWrites breaks [look_foretells_a_claim_and_writes_nothing];
    LapseComesLate breaks [times_are_past_when_they_come, empty_durations_end_at_once];
    LapseComesEarly breaks [times_are_past_when_they_come];
    PurgeComesEarly breaks [times_are_past_when_they_come];
    ExpiredForEver breaks [
        completed_answers_then_expires_then_is_new,
        fence_rises_with_each_grant,
        one_of_fifty_wins_an_expired_key,
        times_are_past_when_they_come,
    ];
    ExpiredNamesTheMismatch breaks [completed_answers_then_expires_then_is_new];
    RetentionBeatsTheLease breaks [live_lease_outlasts_its_retention];
    AbandonedKeepsItsPayload breaks [abandoned_key_is_new_after_its_retention, times_are_past_when_they_come];
    ExpiredIsPurged breaks [purge_removes_what_is_over_and_keeps_the_rest, times_are_past_when_they_come];
    HeldIsPurged breaks [purge_spares_what_is_held_or_in_doubt];
    DoubtIsPurged breaks [purge_spares_what_is_held_or_in_doubt];
    PurgeIgnoresItsBound breaks [purge_keeps_to_its_bound];
    ListingRepeats breaks [listing_pages_in_the_order_of_addresses, listing_in_doubt_shows_doubt_alone];
    HeldIsNotListed breaks [listing_in_doubt_shows_doubt_alone];
    AttemptIsHidden breaks [record_is_found_as_it_was_claimed, listing_pages_in_the_order_of_addresses];
    AbsentCompletionCounts breaks [absent_record_ends_nothing];
    ResolvedOutcomeIsDropped breaks [resolution_answers_or_frees];
}
