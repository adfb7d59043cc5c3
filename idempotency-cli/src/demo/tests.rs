use super::{
    report::{Report, Side},
    sides,
};

/// How many conversations each story has: few, so that many seeds are told.
const CONVERSATIONS: u32 = 25;

#[test]
fn with_a_ledger_every_message_is_answered_once_and_without_many_are_answered_twice() {
    let mut duplicates = 0;
    for seed in 1..=40 {
        let (without, with) = sides(seed, CONVERSATIONS);
        assert!(with.is_clean(), "seed {seed}: {with:?}");
        duplicates += without.duplicates;
    }
    assert!(duplicates > 40 * 5, "the faults do nothing: {duplicates} duplicates without a ledger");
}

#[test]
fn every_fault_happens() {
    let (_, with) = sides(7, 100);
    let faults: Vec<_> = with.faults.into_keys().collect();
    assert_eq!(
        faults,
        ["customerBurst", "duplicateDelivery", "timeoutAfterSend", "timeoutBeforeSend", "workerCrash",]
    );
}

#[test]
fn a_seed_is_a_story() {
    assert_eq!(sides(3, CONVERSATIONS), sides(3, CONVERSATIONS));
    assert_ne!(sides(3, CONVERSATIONS).0, sides(4, CONVERSATIONS).0);
}

#[test]
fn a_message_that_is_not_answered_is_as_bad_as_one_that_is_answered_twice() {
    let side = |duplicates, unanswered| Side {
        messages: 3,
        replies: 3,
        duplicates,
        unanswered,
        faults: [("workerCrash", 2)].into(),
    };
    let report = |duplicates, unanswered| Report {
        conversations: 2,
        seed: 1,
        without: side(9, 0),
        with: side(duplicates, unanswered),
    };
    assert_eq!(
        [report(0, 0), report(1, 0), report(0, 1)].map(|report| report.is_clean()),
        [true, false, false]
    );
    let json: serde_json::Value = serde_json::from_str(&report(0, 1).json()).unwrap();
    assert_eq!((&json["clean"], &json["with"]["unanswered"]), (&false.into(), &1.into()));
    assert_eq!(json["without"]["faults"]["workerCrash"], 2);
    assert!(
        report(0, 0).table(false).contains("answered once") && !report(0, 0).table(false).contains('\u{1b}')
    );
    assert!(report(0, 0).table(true).contains("\u{1b}[31mwithout"));
}
