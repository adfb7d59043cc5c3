//! What the original gets wrong, each fault once by its law and once by the mended one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use idempotency_agent::{
    Compat,
    ledger::{
        Asker, Begin, BeginState, Begun, Claim, Claimed, ConflictMode, Conflicts, Document, Effect, End,
        Number, Pass, Raw, Reconcile, RefusalReason, Resolution, Resolve, RunMode, Settle, Settled, Status,
        Terms, Verdict, begin, check, claim, end, history, pass, reconcile, resolve, settle,
    },
};

const LEASE: i128 = 100;
const PENDING: i128 = 300;
const RETENTION: i128 = 10_000;
const MAX_RESULT: usize = 20;

/// A scope under one of the laws.
struct Scope {
    document: Document,
    terms: Terms,
}

fn number(value: i128) -> Number {
    Number::Whole(value)
}

impl Scope {
    fn under(compat: Compat) -> Self {
        let (pending_ttl, max_attempts, retention) = (number(PENDING), number(3), number(RETENTION));
        let terms = Terms { pending_ttl, max_attempts, retention, max_result: MAX_RESULT, compat };
        Self { document: Document::empty(), terms }
    }

    fn begin(&mut self, run_id: &str, mode: RunMode, read_at: Option<i128>, now: i128) -> Begun {
        let input =
            Begin { run_id: run_id.to_owned(), mode, lease: number(LEASE), context_at: read_at.map(number) };
        let step = begin(self.document.clone(), &input, number(now), &self.terms).unwrap();
        self.document = step.write.unwrap_or_else(|| self.document.clone());
        step.verdict
    }

    /// The state and the token of a run that begins.
    fn run(&mut self, run_id: &str, mode: RunMode, now: i128) -> (BeginState, Number) {
        match self.begin(run_id, mode, None, now) {
            Begun::Run { state, run, .. } => (state, run.token),
            Begun::Busy(busy) => panic!("{busy:?}"),
        }
    }

    fn claim(&mut self, claim_: &Claim, now: i128) -> Claimed {
        let step = claim(self.document.clone(), claim_, number(now), &self.terms).unwrap();
        self.document = step.write.unwrap_or_else(|| self.document.clone());
        step.verdict
    }

    fn settle(&mut self, key: &str, verdict: Verdict, now: i128) -> Settled {
        let attempt_id = self.document.effect(key).unwrap().attempt_id.clone();
        let input = Settle { key: key.to_owned(), attempt_id, verdict, result: None, error: None };
        let step = settle(self.document.clone(), &input, number(now), &self.terms).unwrap();
        self.document = step.write.unwrap_or_else(|| self.document.clone());
        step.verdict
    }

    fn cancel(&mut self, run_id: &str, now: i128) {
        let step = end(self.document.clone(), &End::cancel(run_id), number(now), &self.terms).unwrap();
        self.document = step.write.unwrap();
    }

    /// An effect outside of runs, claimed and committed.
    fn other(&mut self, key: &str, now: i128) {
        let (_, intent) = (key, key.split(':').next().unwrap());
        let claimed =
            self.claim(&Claim { key: key.to_owned(), intent: intent.to_owned(), ..attempt("", None) }, now);
        assert!(matches!(claimed, Claimed::Acquired(_)));
        self.settle(key, Verdict::Committed, now);
    }
}

fn attempt(key: &str, run: Option<(&str, Number)>) -> Claim {
    Claim {
        scope: "s".to_owned(),
        key: key.to_owned(),
        intent: key.split(':').next().unwrap().to_owned(),
        summary: None,
        asker: run.map(|(run_id, token)| Asker { run_id: run_id.to_owned(), token: Some(token) }),
        attempt_id: format!("attempt at {key}"),
        conflict: ConflictMode::Any,
        acknowledges: true,
        lease: number(LEASE),
        payload: None,
        marks_point_of_no_return: false,
    }
}

fn conflicts(claimed: Claimed) -> Conflicts {
    match claimed {
        Claimed::Refused { reason: RefusalReason::ConversationChanged, conflicts, .. } => conflicts,
        other => panic!("{other:?}"),
    }
}

/// Whether the mended law comes to another answer than the original's, and these are the two.
fn assert_mended<A: std::fmt::Debug + PartialEq>(story: impl Fn(&mut Scope) -> A, original: &A, mended: &A) {
    assert_eq!(story(&mut Scope::under(Compat::Strict)), *original, "the original");
    assert_eq!(story(&mut Scope::under(Compat::Mended)), *mended, "mended");
}

/// Fault 1.
#[test]
fn a_redelivery_does_not_take_an_exclusive_scope_from_who_took_it_over() {
    let story = |scope: &mut Scope| {
        scope.run("a", RunMode::Exclusive, 0);
        let (_, token) = scope.run("b", RunMode::Exclusive, LEASE);
        let is_busy = matches!(scope.begin("a", RunMode::Exclusive, None, LEASE + 1), Begun::Busy(_));
        let may_write =
            matches!(scope.claim(&attempt("reply", Some(("b", token))), LEASE + 2), Claimed::Acquired(_));
        (is_busy, may_write)
    };
    assert_mended(story, &(false, false), &(true, true));
}

/// Fault 2.
#[test]
fn what_is_acknowledged_was_told() {
    let story = |scope: &mut Scope| {
        let (_, token) = scope.run("a", RunMode::Supersede, 0);
        scope.other("tag", 1);
        scope.other("reply:1", 2);
        let same_intent =
            Claim { conflict: ConflictMode::SameIntent, ..attempt("reply:2", Some(("a", token))) };
        let told: Vec<_> =
            conflicts(scope.claim(&same_intent, 3)).listed.into_iter().map(|told| told.key).collect();
        let then = matches!(scope.claim(&attempt("refund", Some(("a", token))), 4), Claimed::Acquired(_));
        (told, then)
    };
    let told = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_mended(story, &(told(&["reply:1"]), true), &(told(&["tag", "reply:1"]), true));
}

/// Fault 3.
#[test]
fn of_many_conflicts_the_newest_are_told_and_their_number() {
    let story = |scope: &mut Scope| {
        let (_, token) = scope.run("a", RunMode::Supersede, 0);
        (1..=12).for_each(|at| scope.other(&format!("tag:{at}"), at));
        let told = conflicts(scope.claim(&attempt("reply", Some(("a", token))), 20));
        (told.listed.first().unwrap().key.clone(), told.listed.last().unwrap().key.clone(), told.total)
    };
    let original = ("tag:1".to_owned(), "tag:10".to_owned(), 12);
    assert_mended(story, &original, &("tag:3".to_owned(), "tag:12".to_owned(), 12));
}

/// Fault 4.
#[test]
fn a_call_whose_answer_was_lost_is_repeated_and_counts_once() {
    let story = |scope: &mut Scope| {
        let ask = attempt("reply", None);
        scope.claim(&ask, 0);
        let is_adopted =
            matches!(scope.claim(&ask, 1), Claimed::Acquired(entry) if entry.attempt == Number::ONE);
        scope.settle("reply", Verdict::Committed, 2);
        let counts = matches!(
            scope.settle("reply", Verdict::Committed, 3),
            Settled::Settled { was_abandoned: false, .. }
        );
        (is_adopted, counts, scope.document.effect("reply").unwrap().settled_at)
    };
    assert_mended(story, &(false, false, Some(number(2))), &(true, true, Some(number(2))));
}

/// Fault 9.
#[test]
fn what_is_forgotten_is_not_called_done() {
    let story = |scope: &mut Scope| {
        scope.other("reply", 0);
        let now = number(RETENTION + 1);
        let known = check(&scope.document, "reply", now, &scope.terms).is_done();
        (known, history(&scope.document, now, &scope.terms).len())
    };
    assert_mended(story, &(true, 1), &(false, 0));
}

/// Fault 10, first part.
#[test]
fn a_newer_run_of_which_nothing_happened_fences_nobody() {
    let story = |scope: &mut Scope| {
        let (_, token) = scope.run("a", RunMode::Supersede, 0);
        let (_, newer) = scope.run("b", RunMode::Supersede, 1);
        scope.claim(&attempt("reply:b", Some(("b", newer))), 2);
        scope.settle("reply:b", Verdict::Failed, 3);
        // Its lease lapses.
        matches!(scope.claim(&attempt("reply:a", Some(("a", token))), LEASE + 3), Claimed::Acquired(_))
    };
    assert_mended(story, &false, &true);
}

/// Fault 10, second part.
#[test]
fn a_newer_run_that_wrote_fences_also_once_it_is_withdrawn() {
    let story = |scope: &mut Scope| {
        let (_, token) = scope.run("a", RunMode::Supersede, 0);
        let (_, newer) = scope.run("b", RunMode::Supersede, 1);
        scope.claim(&attempt("reply:b", Some(("b", newer))), 2);
        scope.settle("reply:b", Verdict::Committed, 3);
        scope.cancel("b", 4);
        let blind = Claim { conflict: ConflictMode::None, ..attempt("reply:a", Some(("a", token))) };
        matches!(scope.claim(&blind, 5), Claimed::Acquired(_))
    };
    assert_mended(story, &true, &false);
}

/// Fault 10, third part.
#[test]
fn a_run_born_superseded_keeps_no_exclusive_one_out() {
    let story = |scope: &mut Scope| {
        let (_, token) = scope.run("newer", RunMode::Supersede, 10);
        scope.claim(&attempt("reply", Some(("newer", token))), 11);
        scope.settle("reply", Verdict::Committed, 12);
        let step = end(
            scope.document.clone(),
            &End { run_id: "newer".to_owned(), reason: "completed".to_owned(), token: None },
            number(13),
            &scope.terms,
        );
        scope.document = step.unwrap().write.unwrap();
        let born = scope.begin("older", RunMode::Supersede, Some(5), 14);
        assert!(matches!(born, Begun::Run { state: BeginState::Superseded, .. }));
        matches!(scope.begin("exclusive", RunMode::Exclusive, None, 15), Begun::Busy(_))
    };
    assert_mended(story, &true, &false);
}

/// Fault 12, as far as it is the law's.
#[test]
fn one_at_a_time_finds_out_how_an_attempt_ended() {
    let mut scope = Scope::under(Compat::Mended);
    scope.claim(&attempt("reply", None), 0);
    scope.settle("reply", Verdict::Ambiguous, 1);
    let ask =
        Reconcile { key: "reply".to_owned(), attempt_id: "attempt at reply".to_owned(), lease: number(50) };
    let mut may = |now| {
        let step = reconcile(scope.document.clone(), &ask, number(now), &scope.terms).unwrap();
        scope.document = step.write.unwrap_or_else(|| scope.document.clone());
        step.verdict
    };
    assert_eq!([may(2), may(3), may(51), may(52)], [true, false, false, true]);
}

/// Fault 14, as far as it is the law's.
#[test]
fn a_text_and_an_intent_that_are_written_alike_are_two_things() {
    let story = |scope: &mut Scope| {
        let by_text = Claim { intent: "once".to_owned(), ..attempt("refund", None) };
        scope.claim(&by_text, 0);
        scope.settle("refund", Verdict::Committed, 1);
        match scope.claim(&Claim { attempt_id: "another".to_owned(), ..attempt("refund", None) }, 2) {
            Claimed::Replay(_) => "replay",
            Claimed::Refused { reason, .. } => reason.name(),
            other => panic!("{other:?}"),
        }
    };
    assert_mended(story, &"replay", &"key_taken");
}

/// The clocks: an attempt ends when it said it would, whatever the reader's terms.
#[test]
fn a_reader_with_shorter_terms_gives_up_no_attempt_of_others() {
    let story = |scope: &mut Scope| {
        scope.claim(&attempt("reply", None), 0);
        scope.terms.pending_ttl = number(10);
        let other = Claim { attempt_id: "another".to_owned(), ..attempt("reply", None) };
        let early = matches!(scope.claim(&other, 20), Claimed::InFlight(_));
        let late = matches!(scope.claim(&other, PENDING), Claimed::Ambiguous(_));
        (early, late)
    };
    assert_mended(story, &(false, true), &(true, true));
}

/// The clocks: a redelivery whose clock lags behind takes nothing back.
#[test]
fn a_lagging_clock_does_not_unsee() {
    let story = |scope: &mut Scope| {
        scope.begin("a", RunMode::Supersede, Some(1_000), 1_000);
        match scope.begin("a", RunMode::Supersede, Some(1_050), 500) {
            Begun::Run { run, .. } => run.seen_at,
            Begun::Busy(busy) => panic!("{busy:?}"),
        }
    };
    assert_mended(story, &number(500), &number(1_000));
}

/// Poison: what not every store can hold is not written.
#[test]
fn what_is_written_fits_every_store() {
    let mut scope = Scope::under(Compat::Mended);
    let long = Claim { summary: Some(format!("a\0{}", "😀".repeat(1_500))), ..attempt("reply", None) };
    let Claimed::Acquired(Effect { summary, .. }) = scope.claim(&long, 0) else { panic!() };
    let summary = summary.unwrap();
    assert_eq!((summary.encode_utf16().count(), summary.starts_with("a😀")), (1_999, true));
    let result = Raw::of("a\0b").unwrap();
    let input = Settle {
        key: "reply".to_owned(),
        attempt_id: "attempt at reply".to_owned(),
        verdict: Verdict::Committed,
        result: Some(result),
        error: None,
    };
    let step = settle(scope.document, &input, number(1), &scope.terms).unwrap();
    let Settled::Settled { entry, .. } = step.verdict else { panic!() };
    assert_eq!(entry.result.unwrap().as_str(), "\"ab\"");
}

/// Size: what is too long is not kept, and that it is done is.
#[test]
fn a_result_that_is_too_long_is_not_kept_and_its_effect_stays_done() {
    let story = |length: usize| {
        move |scope: &mut Scope| {
            scope.claim(&attempt("reply", None), 0);
            let input = Settle {
                key: "reply".to_owned(),
                attempt_id: "attempt at reply".to_owned(),
                verdict: Verdict::Committed,
                result: Some(Raw::of(&"x".repeat(length - 2)).unwrap()),
                error: None,
            };
            let step = settle(scope.document.clone(), &input, number(1), &scope.terms).unwrap();
            // What is kept is what was written and read again.
            scope.document = Document::read(&step.write.unwrap().to_text()).unwrap();
            match scope.claim(&Claim { attempt_id: "another".to_owned(), ..attempt("reply", None) }, 2) {
                Claimed::Replay(entry) => (entry.result.is_some(), entry.result_not_kept()),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_mended(story(MAX_RESULT), &(true, None), &(true, None));
    assert_mended(story(MAX_RESULT + 1), &(true, None), &(false, Some(21)));
}

/// Size: nor is what somebody else finds out that it came to.
#[test]
fn a_result_that_was_found_out_is_held_to_the_same_bound() {
    let story = |scope: &mut Scope| {
        scope.claim(&attempt("reply", None), 0);
        scope.settle("reply", Verdict::Ambiguous, 1);
        let result = Some(Raw::of(&"x".repeat(100)).unwrap());
        let input =
            Resolve { key: "reply".to_owned(), resolution: Resolution::Committed, result, attempt_id: None };
        let found =
            resolve(scope.document.clone(), &input, number(2), &scope.terms).unwrap().verdict.unwrap();
        (found.status, found.result.is_some(), found.result_not_kept())
    };
    assert_mended(story, &(Status::Committed, true, None), &(Status::Committed, false, Some(102)));
}

/// The point of no return: a crash before it is known to have done nothing; after it nobody knows.
#[test]
fn a_crash_before_the_point_of_no_return_is_retried_and_after_it_is_not() {
    let ask = |id: &str| Claim {
        marks_point_of_no_return: true,
        attempt_id: id.to_owned(),
        ..attempt("reply", None)
    };
    let pass_it = |scope: &mut Scope, id: &str, now| {
        let input = Pass { key: "reply".to_owned(), attempt_id: id.to_owned() };
        let step = pass(scope.document.clone(), &input, number(now), &scope.terms).unwrap();
        scope.document = step.write.unwrap_or_else(|| scope.document.clone());
        step.verdict
    };
    let mut before = Scope::under(Compat::Mended);
    before.claim(&ask("first"), 0);
    assert!(matches!(before.claim(&ask("second"), PENDING - 1), Claimed::InFlight(_)));
    let Claimed::Acquired(entry) = before.claim(&ask("second"), PENDING) else { panic!() };
    assert_eq!(entry.attempt, number(2));
    // The first attempt was only slow: it is not let past.
    assert_eq!(pass_it(&mut before, "first", PENDING + 1), Err(RefusalReason::Superseded));
    assert_eq!(pass_it(&mut before, "second", PENDING + 1), Ok(()));

    let mut after = Scope::under(Compat::Mended);
    after.claim(&ask("first"), 0);
    assert_eq!(pass_it(&mut after, "first", 1), Ok(()));
    assert!(matches!(after.claim(&ask("second"), PENDING), Claimed::Ambiguous(_)));
    assert_eq!(after.document.effect("reply").unwrap().status, Status::Ambiguous);
}

#[test]
fn a_fenced_run_does_not_pass_its_point_of_no_return() {
    let mut scope = Scope::under(Compat::Mended);
    let (_, token) = scope.run("a", RunMode::Supersede, 0);
    let ask = Claim { marks_point_of_no_return: true, ..attempt("reply", Some(("a", token))) };
    assert!(matches!(scope.claim(&ask, 1), Claimed::Acquired(_)));
    scope.run("b", RunMode::Supersede, 2);
    let input = Pass { key: "reply".to_owned(), attempt_id: ask.attempt_id };
    let step = pass(scope.document, &input, number(3), &scope.terms).unwrap();
    assert_eq!((step.write, step.verdict), (None, Err(RefusalReason::Superseded)));
}
