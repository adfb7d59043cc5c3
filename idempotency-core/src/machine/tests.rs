//! One test a row of the law, in its order and with its boundaries, and then the consequences it names.

use super::*;
use crate::{Part, PhaseName};

const ME: Holder = Holder::from_bytes([1; 16]);
const OTHER: Holder = Holder::from_bytes([2; 16]);
const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(100);
const KEEP: Keep = Keep { replay: Duration::from_secs(60), then_reject: Duration::from_secs(40) };
/// Far above what the clock reads in these tests, so that a fence taken from the clock shows.
const FENCE: u64 = 9_000_000_000;

/// `second` seconds after the moment every test begins at.
fn at(second: u64) -> Timestamp {
    Timestamp::from_micros((1_000 + second) * 1_000_000)
}

/// The last microsecond before `time`.
fn just_before(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros() - 1)
}

fn asked(body: &str) -> Fingerprint {
    Fingerprint::builder().part(Part::Body, body.as_bytes()).build()
}

fn op(body: &str) -> Operation {
    Operation::new(Address::from_bytes([7; 32]), asked(body))
}

fn bid(holder: Holder, on_lapse: OnLapse) -> Bid {
    Bid { holder, lease: LEASE, retention: RETENTION, on_lapse }
}

fn outcome(text: &'static str) -> Outcome {
    Outcome::whole(crate::Media(1), text)
}

/// A record of holder `ME` that asked "a".
fn record(phase: Phase, on_lapse: OnLapse) -> Record {
    Record { phase, holder: ME, fence: Fence::from_u64(FENCE), attempt: 2, on_lapse, retention: RETENTION }
}

fn in_flight(until: Timestamp, on_lapse: OnLapse) -> Record {
    record(Phase::InFlight { fingerprint: asked("a"), until }, on_lapse)
}

fn completed_at(second: u64) -> Record {
    let (until, gone) = (at(second + 60), at(second + 100));
    let phase = Phase::Completed { fingerprint: asked("a"), outcome: outcome("first"), until, gone };
    record(phase, OnLapse::TakeOver)
}

fn released_until(second: u64) -> Record {
    record(Phase::Released { until: at(second) }, OnLapse::TakeOver)
}

fn in_doubt() -> Record {
    record(Phase::InDoubt { fingerprint: asked("a") }, OnLapse::TakeOver)
}

/// One record of each phase, none of them past anything at `at(0)`.
fn one_of_each() -> [Record; 4] {
    [in_flight(at(30), OnLapse::TakeOver), completed_at(0), released_until(100), in_doubt()]
}

fn claim_by(holder: Holder, body: &str, record: &Record, now: Timestamp) -> Step<Claim<Lease>> {
    claim(Some(record), &op(body), &bid(holder, OnLapse::TakeOver), now)
}

fn granted(fence: u64, holder: Holder, attempt: u32) -> Claim<Lease> {
    let address = Address::from_bytes([7; 32]);
    Claim::Granted(Lease { address, holder, fence: Fence::from_u64(fence), attempt })
}

fn standing(record: &Record) -> Settled {
    Settled::Fenced(Some(Standing { phase: record.phase.name(), fence: record.fence }))
}

fn differs_in_body() -> Claim<Lease> {
    Claim::Mismatch([Part::Body].into_iter().collect())
}

#[test]
fn row_01_a_lost_grant_is_adopted_by_the_same_holder_and_payload() {
    for (until, now, extended) in
        [(at(30), at(10), at(40)), (at(90), at(10), at(90)), (at(30), at(30), at(60))]
    {
        for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
            let step = claim_by(ME, "a", &in_flight(until, on_lapse), now);
            assert_eq!(step.verdict, granted(FENCE, ME, 2));
            assert_eq!(step.write, Some(in_flight(extended, on_lapse)), "the record keeps its own policy");
        }
    }
}

#[test]
fn row_02_a_copy_of_a_released_claim_never_runs() {
    let found = released_until(100);
    for now in [at(0), just_before(at(100)), at(100), at(500)] {
        for body in ["a", "b"] {
            assert_eq!(claim_by(ME, body, &found, now), Step::unchanged(Claim::Ended));
        }
    }
}

#[test]
fn row_03_an_absent_record_is_granted_at_the_clock() {
    let step = claim(None, &op("a"), &bid(ME, OnLapse::Hold), at(0));
    let fence = at(0).as_micros();
    let after = Record { fence: Fence::from_u64(fence), attempt: 1, ..in_flight(at(30), OnLapse::Hold) };
    assert_eq!(step, Step::write(after, granted(fence, ME, 1)));
}

#[test]
fn row_03_a_free_key_is_granted_for_any_payload() {
    let lapsed_long_ago = in_flight(at(0), OnLapse::TakeOver);
    for (found, now) in [(released_until(100), at(1)), (completed_at(0), at(100)), (lapsed_long_ago, at(100))]
    {
        let step = claim_by(OTHER, "b", &found, now);
        assert_eq!(step.verdict, granted(FENCE + 1, OTHER, 1), "{:?}", found.phase);
        let until = now.plus(LEASE);
        let phase = Phase::InFlight { fingerprint: asked("b"), until };
        let fence = Fence::from_u64(FENCE + 1);
        let after = Record { phase, holder: OTHER, fence, attempt: 1, ..found };
        assert_eq!(step.write, Some(after));
    }
}

#[test]
fn row_03_begins_when_the_record_is_gone_and_not_before() {
    assert_eq!(claim_by(OTHER, "b", &completed_at(0), just_before(at(100))).verdict, Claim::Expired);
    let lapsed = in_flight(at(0), OnLapse::TakeOver);
    assert_eq!(claim_by(OTHER, "b", &lapsed, just_before(at(100))).verdict, differs_in_body());
    let held = in_flight(at(0), OnLapse::Hold);
    assert_eq!(
        claim_by(OTHER, "b", &held, at(100_000)).verdict,
        differs_in_body(),
        "doubt never frees a key"
    );
}

#[test]
fn row_04_a_completed_key_expires_before_it_is_new_for_any_payload() {
    for now in [at(60), just_before(at(100))] {
        for (holder, body) in [(OTHER, "a"), (OTHER, "b"), (ME, "a")] {
            assert_eq!(claim_by(holder, body, &completed_at(0), now), Step::unchanged(Claim::Expired));
        }
    }
    assert_ne!(claim_by(OTHER, "a", &completed_at(0), just_before(at(60))).verdict, Claim::Expired);
}

#[test]
fn row_05_another_payload_is_a_mismatch_even_from_the_holder() {
    let lapsed = in_flight(at(0), OnLapse::TakeOver);
    let held = in_flight(at(0), OnLapse::Hold);
    for found in [in_flight(at(30), OnLapse::Hold), completed_at(0), in_doubt(), lapsed, held] {
        for holder in [ME, OTHER] {
            assert_eq!(claim_by(holder, "b", &found, at(0)), Step::unchanged(differs_in_body()));
        }
    }
}

#[test]
fn row_06_a_completed_operation_answers_with_its_outcome_or_tombstone() {
    for now in [at(0), just_before(at(60))] {
        for holder in [ME, OTHER] {
            let step = claim_by(holder, "a", &completed_at(0), now);
            assert_eq!(step, Step::unchanged(Claim::Completed(outcome("first"))));
        }
    }
    let tombstone = Outcome::tombstone(crate::Media(1), "done");
    let done = complete(Some(&in_doubt()), &ME, &tombstone, KEEP, at(0)).write.unwrap();
    assert_eq!(claim_by(OTHER, "a", &done, at(1)).verdict, Claim::Completed(tombstone));
}

#[test]
fn row_07_doubt_is_never_granted() {
    let fence = Fence::from_u64(FENCE);
    for (found, now) in [(in_doubt(), at(100_000)), (in_flight(at(30), OnLapse::Hold), at(30))] {
        // The bid asks for a takeover; the record's own policy decides.
        assert_eq!(claim_by(OTHER, "a", &found, now), Step::unchanged(Claim::InDoubt { fence }));
    }
}

#[test]
fn row_08_a_lapsed_lease_is_taken_over_by_the_same_payload() {
    let found = in_flight(at(30), OnLapse::TakeOver);
    let step = claim(Some(&found), &op("a"), &bid(OTHER, OnLapse::Hold), at(30));
    assert_eq!(step.verdict, granted(FENCE + 1, OTHER, 3));
    let fence = Fence::from_u64(FENCE + 1);
    let after = Record { holder: OTHER, fence, attempt: 3, ..in_flight(at(60), OnLapse::Hold) };
    assert_eq!(step.write, Some(after), "the new bid's policy stands in the record");
}

#[test]
fn row_09_a_live_lease_says_how_long_it_has_to_go() {
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        let found = in_flight(at(30), on_lapse);
        let left = |now| claim_by(OTHER, "a", &found, now);
        assert_eq!(left(at(10)), Step::unchanged(Claim::InFlight { left: Duration::from_secs(20) }));
        let last = left(just_before(at(30)));
        assert_eq!(last, Step::unchanged(Claim::InFlight { left: Duration::from_micros(1) }));
    }
}

#[test]
fn row_10_the_holder_renews_lapsed_or_not_and_never_shortens() {
    for (until, now, extended) in
        [(at(30), at(10), at(40)), (at(90), at(10), at(90)), (at(30), at(50), at(80))]
    {
        for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
            let step = renew(Some(&in_flight(until, on_lapse)), &ME, LEASE, now);
            assert_eq!(step, Step::write(in_flight(extended, on_lapse), Settled::Applied));
        }
    }
}

#[test]
fn row_11_the_holder_completes_lapsed_in_doubt_or_running() {
    let long_lapsed = in_flight(at(0), OnLapse::TakeOver);
    let held = in_flight(at(0), OnLapse::Hold);
    for found in [in_flight(at(400), OnLapse::TakeOver), long_lapsed, held, in_doubt()] {
        let step = complete(Some(&found), &ME, &outcome("first"), KEEP, at(300));
        let after = Record { on_lapse: found.on_lapse, ..completed_at(300) };
        assert_eq!(step, Step::write(after, Settled::Applied));
    }
}

#[test]
fn row_12_the_first_outcome_stands() {
    for now in [at(1), at(60), at(100)] {
        let step = complete(Some(&completed_at(0)), &ME, &outcome("second"), KEEP, now);
        assert_eq!(step, Step::unchanged(Settled::Applied));
    }
}

#[test]
fn row_13_a_release_frees_the_key_lapsed_or_not() {
    for until in [at(30), at(5)] {
        let step = release(Some(&in_flight(until, OnLapse::TakeOver)), &ME, Release::NotApplied, at(10));
        assert_eq!(step, Step::write(released_until(110), Settled::Applied));
    }
}

#[test]
fn row_14_a_release_sent_twice_counts_once() {
    let step = release(Some(&released_until(100)), &ME, Release::NotApplied, at(50));
    assert_eq!(step, Step::unchanged(Settled::Applied));
}

#[test]
fn row_15_an_unknown_ending_is_in_doubt_whatever_the_policy() {
    for on_lapse in [OnLapse::TakeOver, OnLapse::Hold] {
        for until in [at(30), at(5)] {
            let step = release(Some(&in_flight(until, on_lapse)), &ME, Release::Unknown, at(10));
            assert_eq!(step, Step::write(Record { on_lapse, ..in_doubt() }, Settled::Applied));
        }
    }
    let again = release(Some(&in_doubt()), &ME, Release::Unknown, at(10));
    assert_eq!(again, Step::unchanged(Settled::Applied));
}

#[test]
fn row_16_doubt_resolved_as_applied_answers_replays() {
    let applied = Resolution::Applied(outcome("first"), KEEP);
    for found in [in_doubt(), in_flight(at(30), OnLapse::Hold)] {
        let step = resolve(Some(&found), found.fence, &applied, at(30));
        let after = Record { on_lapse: found.on_lapse, holder: Holder::RESOLVED, ..completed_at(30) };
        assert_eq!(step, Step::write(after.clone(), Settled::Applied), "no run holds it");
        let late = complete(Some(&after), &ME, &outcome("late"), KEEP, at(30));
        assert!(matches!(late.verdict, Settled::Fenced(_)) && late.write.is_none(), "{late:?}");
    }
}

#[test]
fn row_17_doubt_resolved_as_not_applied_frees_the_key() {
    for found in [in_doubt(), in_flight(at(30), OnLapse::Hold)] {
        let step = resolve(Some(&found), found.fence, &Resolution::NotApplied, at(30));
        let after = Record { on_lapse: found.on_lapse, ..released_until(130) };
        assert_eq!(step, Step::write(after, Settled::Applied), "the holder is kept");
    }
}

#[test]
fn row_18_an_ending_by_anybody_else_changes_nothing() {
    for found in one_of_each() {
        let fenced = Step::unchanged(standing(&found));
        let found = Some(&found);
        assert_eq!(renew(found, &OTHER, LEASE, at(0)), fenced);
        assert_eq!(complete(found, &OTHER, &outcome("stale"), KEEP, at(0)), fenced);
        assert_eq!(release(found, &OTHER, Release::NotApplied, at(0)), fenced);
        assert_eq!(release(found, &OTHER, Release::Unknown, at(0)), fenced);
    }
}

#[test]
fn row_18_an_ending_that_no_other_row_names_changes_nothing() {
    let [running, done, free, doubt] = one_of_each();
    for found in [&done, &free, &doubt] {
        assert_eq!(renew(Some(found), &ME, LEASE, at(0)), Step::unchanged(standing(found)));
    }
    assert_eq!(complete(Some(&free), &ME, &outcome("late"), KEEP, at(0)), Step::unchanged(standing(&free)));
    for found in [&done, &doubt] {
        let step = release(Some(found), &ME, Release::NotApplied, at(0));
        assert_eq!(step, Step::unchanged(standing(found)));
    }
    for found in [&done, &free] {
        assert_eq!(release(Some(found), &ME, Release::Unknown, at(0)), Step::unchanged(standing(found)));
    }
    let lapsed = in_flight(at(0), OnLapse::TakeOver);
    let still_held = Record { on_lapse: OnLapse::Hold, ..running.clone() };
    for found in [&running, &done, &free, &lapsed, &still_held] {
        let step = resolve(Some(found), found.fence, &Resolution::NotApplied, at(0));
        assert_eq!(step, Step::unchanged(standing(found)), "only doubt is resolved");
    }
    let older = Fence::from_u64(FENCE - 1);
    let step = resolve(Some(&doubt), older, &Resolution::NotApplied, at(0));
    assert_eq!(step, Step::unchanged(standing(&doubt)), "a resolution names the fence it saw");
}

#[test]
fn row_18_nothing_to_end_says_so() {
    let nothing = Step::unchanged(Settled::Fenced(None));
    assert_eq!(renew(None, &ME, LEASE, at(0)), nothing);
    assert_eq!(complete(None, &ME, &outcome("late"), KEEP, at(0)), nothing);
    assert_eq!(release(None, &ME, Release::NotApplied, at(0)), nothing);
    assert_eq!(resolve(None, Fence::from_u64(FENCE), &Resolution::NotApplied, at(0)), nothing);
}

#[test]
fn row_19_a_purge_takes_what_is_free_and_nothing_held_or_in_doubt() {
    for (found, goes) in [
        (completed_at(0), at(100)),
        (released_until(100), at(100)),
        (in_flight(at(30), OnLapse::TakeOver), at(130)),
    ] {
        assert!(!is_removable(&found, just_before(goes)), "{:?} goes too early", found.phase);
        assert!(is_removable(&found, goes), "{:?} stays too long", found.phase);
    }
    for found in [in_doubt(), in_flight(at(30), OnLapse::Hold)] {
        assert!(!is_removable(&found, just_before(Timestamp::NEVER)), "{:?} has no end", found.phase);
        assert!(is_in_doubt(&found, at(30)));
    }
    assert!(!is_in_doubt(&in_flight(at(30), OnLapse::Hold), just_before(at(30))));
    assert!(!is_in_doubt(&in_flight(at(30), OnLapse::TakeOver), at(30)));
}

#[test]
fn a_lease_that_only_lapsed_completes_and_one_taken_over_ends_nothing() {
    let lapsed = in_flight(at(30), OnLapse::TakeOver);
    let late = complete(Some(&lapsed), &ME, &outcome("late"), KEEP, at(90));
    assert_eq!(late.verdict, Settled::Applied);

    let taken_over = claim_by(OTHER, "a", &lapsed, at(30)).write.unwrap();
    let stale = complete(Some(&taken_over), &ME, &outcome("late"), KEEP, at(90));
    assert_eq!(stale, Step::unchanged(standing(&taken_over)));
}

#[test]
fn hold_grants_again_only_after_a_resolution() {
    let held = in_flight(at(30), OnLapse::Hold);
    let fence = held.fence;
    assert_eq!(claim_by(OTHER, "a", &held, at(1_000)).verdict, Claim::InDoubt { fence });
    let freed = resolve(Some(&held), fence, &Resolution::NotApplied, at(1_000)).write.unwrap();
    assert_eq!(claim_by(OTHER, "a", &freed, at(1_000)).verdict, granted(FENCE + 1, OTHER, 1));
    assert_eq!(claim_by(ME, "a", &freed, at(1_000)).verdict, Claim::Ended, "not by the copy in doubt");
}

#[test]
fn removing_a_record_changes_no_verdict_of_a_new_holder() {
    let lapsed = in_flight(at(0), OnLapse::TakeOver);
    for found in [completed_at(0), released_until(100), lapsed] {
        assert!(is_removable(&found, at(100)));
        for body in ["a", "b"] {
            assert_eq!(look(Some(&found), &op(body), at(100)), look(None, &op(body), at(100)));
        }
    }
}

#[test]
fn the_clock_lifts_a_fence_over_every_record_it_removed() {
    let found = Record { fence: Fence::from_u64(at(0).as_micros()), ..released_until(100) };
    let with = claim_by(OTHER, "a", &found, at(200)).write.unwrap();
    let without = claim(None, &op("a"), &bid(OTHER, OnLapse::TakeOver), at(200)).write.unwrap();
    assert_eq!(with.fence, without.fence);
    assert!(without.fence > found.fence);
}

#[test]
fn a_look_agrees_with_the_claim_a_new_holder_would_make() {
    let lapsed = [in_flight(at(0), OnLapse::TakeOver), in_flight(at(0), OnLapse::Hold)];
    for found in one_of_each().iter().chain(&lapsed).map(Some).chain([None]) {
        for (body, now) in
            ["a", "b"].into_iter().flat_map(|body| [0, 60, 100].map(|second| (body, at(second))))
        {
            let claimed = claim(found, &op(body), &bid(OTHER, OnLapse::TakeOver), now);
            assert_eq!(look(found, &op(body), now), claimed.verdict.map(|_| Vacant));
        }
    }
}

#[test]
fn standing_names_what_is_there() {
    let names = one_of_each().map(|found| match renew(Some(&found), &OTHER, LEASE, at(0)).verdict {
        Settled::Fenced(Some(Standing { phase, .. })) => phase,
        other => panic!("{other:?}"),
    });
    use PhaseName::{Completed, InDoubt, InFlight, Released};
    assert_eq!(names, [InFlight, Completed, Released, InDoubt]);
}
