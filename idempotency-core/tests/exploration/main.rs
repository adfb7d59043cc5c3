//! Every history of one record.
//!
//! Three holders bid for one key with two payloads, run, renew and end; an operator resolves. Messages are never
//! used up: what was sent may arrive at any later time and any number of times, so a lost message, a lost reply, a
//! repetition and a delayed copy are one freedom. A crash is a holder that takes no further step. Time moves in
//! ticks without an end, and a purge may come at any moment. All interleavings are walked breadth first, and every
//! step is held against the promises of [`step::Broken`].
//!
//! The same walk over a law broken on purpose (see [`law`]) has to find what is broken: a walk that never finds
//! anything proves nothing.

mod explore;
mod law;
mod step;
mod words;
mod world;

use idempotency_core::OnLapse::{self, Hold, TakeOver};

use crate::{
    explore::{Walk, walk},
    law::Law,
    step::{Broken, Setting},
};

const TAKE_OVER: [OnLapse; 3] = [TakeOver; 3];
const HOLD: [OnLapse; 3] = [Hold; 3];

/// Walks everywhere under the law as it is.
fn keeps_every_promise(on_lapse: [OnLapse; 3], at_least: usize) -> Walk {
    let setting = Setting { law: Law::default(), on_lapse };
    let walk = walk(&setting).unwrap_or_else(|found| panic!("{found}"));
    println!("{} states, {} steps\n{}", walk.states, walk.steps, walk.answers);
    assert!(walk.states >= at_least, "only {} states: the walk no longer reaches far enough", walk.states);
    walk
}

#[test]
fn every_promise_holds_when_lapsed_leases_are_taken_over() {
    let answers = keeps_every_promise(TAKE_OVER, 190_000).answers;
    let claim = ["granted", "completed", "expired", "in flight", "mismatch", "in doubt", "ended"];
    answers.assert_seen("claim", &claim);
    for input in ["renew", "complete", "release", "release unknown", "resolve"] {
        answers.assert_seen(input, &["applied", "fenced"]);
    }
}

#[test]
fn every_promise_holds_when_lapsed_leases_are_held() {
    let answers = keeps_every_promise(HOLD, 430_000).answers;
    let claim = ["granted", "completed", "expired", "in flight", "mismatch", "in doubt", "ended"];
    answers.assert_seen("claim", &claim);
    for input in ["renew", "complete", "release", "release unknown", "resolve"] {
        answers.assert_seen(input, &["applied", "fenced"]);
    }
}

#[test]
fn every_promise_holds_when_bids_disagree_about_lapses() {
    keeps_every_promise([TakeOver, Hold, TakeOver], 280_000);
}

/// Walks under a broken law until it finds what is broken.
fn finds(expected: Broken, law: Law, on_lapse: [OnLapse; 3]) {
    match walk(&Setting { law, on_lapse }) {
        Ok(walk) => panic!("{expected:?} went unseen in {} states", walk.states),
        Err(found) => assert_eq!(found.broken, expected, "{found}"),
    }
}

#[test]
fn finds_a_takeover_of_a_held_record() {
    finds(Broken::GrantOverDoubt, Law { claim: law::claim_ignoring_hold, ..Law::default() }, HOLD);
}

#[test]
fn finds_a_takeover_of_a_live_lease() {
    finds(
        Broken::LiveRunLostItsLease,
        Law { claim: law::claim_ignoring_leases, ..Law::default() },
        TAKE_OVER,
    );
}

#[test]
fn finds_a_released_claim_granted_again() {
    let law = Law { claim: law::claim_forgetting_releases, ..Law::default() };
    finds(Broken::ReleasedClaimGranted, law, HOLD);
}

#[test]
fn finds_a_fence_that_repeats_within_a_tick_of_the_clock() {
    let law = Law { claim: law::claim_fenced_by_the_clock, ..Law::default() };
    finds(Broken::FenceDidNotRise, law, TAKE_OVER);
}

#[test]
fn finds_a_completion_by_anybody() {
    finds(Broken::StrangerCounted, Law { complete: law::complete_by_anybody, ..Law::default() }, HOLD);
}

#[test]
fn finds_a_second_outcome() {
    finds(Broken::OutcomeChanged, Law { complete: law::complete_again, ..Law::default() }, HOLD);
}

#[test]
fn finds_a_release_that_deletes_the_record() {
    let law = Law { release: law::release_deleting, ..Law::default() };
    finds(Broken::RepetitionChangedSomething, law, HOLD);
}

#[test]
fn finds_a_release_that_forgets_the_doubt() {
    let law = Law { release: law::release_forgetting_doubt, ..Law::default() };
    finds(Broken::SecondRunUnderHold, law, HOLD);
}

#[test]
fn finds_a_resolution_of_a_live_lease() {
    finds(Broken::LiveRunLostItsLease, Law { resolve: law::resolve_anything, ..Law::default() }, HOLD);
}

#[test]
fn finds_a_purge_of_doubt() {
    finds(Broken::PurgeTookDoubt, Law { is_removable: law::removable_when_lapsed, ..Law::default() }, HOLD);
}

#[test]
fn finds_a_purge_of_an_answer_that_counts() {
    let law = Law { is_removable: law::removable_when_completed, ..Law::default() };
    finds(Broken::PurgeChangedAVerdict, law, TAKE_OVER);
}
