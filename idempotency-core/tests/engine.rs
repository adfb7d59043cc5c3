//! The engine against a store that fails on command: what is claimed, kept, ended, withdrawn and drained.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, ClaimError, Completion, Door, Engine, Fingerprint, Keep, Key, Lease, Media, OnLapse,
    Operation, Outcome, Part, Permit, Release, Scope, Settled, Store, StoreError, StoreErrorKind, Vacant,
    event::{Event, Observer},
    policy::{Bounds, Terms},
};
use idempotency_store_contract::faults::{Call, Fault, Faults, Faulty};
use idempotency_store_memory::MemoryStore;

type TestStore = Faulty<MemoryStore>;

const UNAVAILABLE: Fault = Fault::Fails(StoreErrorKind::Unavailable);

fn op(key: &str) -> Operation {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new(key).unwrap());
    Operation::new(address, Fingerprint::builder().part(Part::Body, b"1").build())
}

fn outcome(text: &'static str) -> Outcome {
    Outcome::whole(Media(7), text)
}

fn tombstone() -> Outcome {
    Outcome::tombstone(Media(7), "gone")
}

/// Short enough to be waited for, long enough to be renewed in time.
fn terms() -> Terms {
    Terms { lease: Duration::from_millis(600), ..Terms::default() }
}

fn engine() -> (Engine<TestStore>, Faults) {
    let (store, faults) = Faulty::new(MemoryStore::new());
    (Engine::new(store, Bounds { store_timeout: Duration::from_millis(500), ..Bounds::default() }), faults)
}

async fn granted(engine: &Engine<TestStore>, op: &Operation, terms: &Terms) -> Permit<TestStore> {
    match engine.claim(op, terms).await.unwrap() {
        Claim::Granted(permit) => permit,
        refused => panic!("not granted: {refused:?}"),
    }
}

async fn look(engine: &Engine<TestStore>, op: &Operation) -> Claim<Vacant> {
    engine.store().look(op).await.unwrap()
}

#[tokio::test]
async fn a_completed_operation_answers_every_later_claim() {
    let (engine, _) = engine();
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert_eq!(permit.lease().attempt, 1);
    assert!(matches!(engine.claim(&op("k"), &terms()).await, Ok(Claim::InFlight { .. })));
    assert!(matches!(permit.complete(outcome("done"), tombstone).await, Completion::Stored));
    assert!(
        matches!(engine.claim(&op("k"), &terms()).await, Ok(Claim::Completed(o)) if o == outcome("done"))
    );
    assert_eq!(engine.live_runs(), 0);
}

#[tokio::test]
async fn a_live_run_is_renewed_past_its_first_lease() {
    let (engine, faults) = engine();
    let permit = granted(&engine, &op("k"), &terms()).await;
    faults.reached(Call::Renew, 4).await; // a third of a lease apart: the first lease is over
    assert!(matches!(look(&engine, &op("k")).await, Claim::InFlight { .. }));
    assert!(!permit.lease_lost().is_lost());
    assert!(matches!(permit.complete(outcome("late"), tombstone).await, Completion::Stored));
    let renewals = faults.calls(Call::Renew);
    let next = granted(&engine, &op("other"), &terms()).await;
    faults.reached(Call::Renew, renewals + 2).await; // the other run's: the ended one is renewed no more
    drop(next);
}

#[tokio::test]
async fn one_task_renews_many_runs_of_different_terms() {
    let (engine, faults) = engine();
    let long = Terms { lease: Duration::from_secs(60), max_run: Duration::from_secs(60), ..Terms::default() };
    let _long = granted(&engine, &op("long"), &long).await;
    let mut permits = Vec::new();
    for number in 0..20 {
        permits.push(granted(&engine, &op(&format!("k{number}")), &terms()).await);
    }
    faults.reached(Call::Renew, 80).await;
    for (number, permit) in permits.into_iter().enumerate() {
        assert!(!permit.lease_lost().is_lost(), "run {number}");
        assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
    }
}

#[tokio::test]
async fn a_run_whose_renewals_fail_is_told_and_may_still_complete() {
    let (engine, faults) = engine();
    faults.set(Call::Renew, UNAVAILABLE);
    let permit = granted(&engine, &op("k"), &terms()).await;
    permit.lease_lost().wait().await;
    assert!(matches!(permit.complete(outcome("mine"), tombstone).await, Completion::Stored));
    assert_eq!(look(&engine, &op("k")).await, Claim::Completed(outcome("mine")));
}

#[tokio::test]
async fn a_run_that_was_taken_over_is_told_and_ends_nothing() {
    let (engine, faults) = engine();
    faults.set(Call::Renew, Fault::Hangs);
    let late = granted(&engine, &op("k"), &terms()).await;
    late.lease_lost().wait().await;
    let second = granted(&engine, &op("k"), &terms()).await;
    assert!(second.lease().is_takeover());
    assert!(second.lease().fence > late.lease().fence);
    let fenced = late.complete(outcome("late"), tombstone).await;
    assert!(matches!(fenced, Completion::Fenced(Some(Claim::InFlight { .. }))), "{fenced:?}");
    faults.mend(Call::Renew);
    assert!(matches!(second.complete(outcome("second"), tombstone).await, Completion::Stored));
    assert_eq!(look(&engine, &op("k")).await, Claim::Completed(outcome("second")));
}

#[tokio::test]
async fn renewing_stops_at_max_run() {
    let (engine, _) = engine();
    let short = Terms { max_run: Duration::from_millis(800), ..terms() };
    let hung = granted(&engine, &op("k"), &short).await;
    hung.lease_lost().wait().await;
    let taken = loop {
        if let Claim::Granted(permit) = engine.claim(&op("k"), &terms()).await.unwrap() {
            break permit;
        }
        tokio::task::yield_now().await;
    };
    assert!(taken.lease().is_takeover());
}

#[tokio::test]
async fn a_lapse_under_hold_is_in_doubt_for_the_next_engine() {
    let (engine, _) = engine();
    let hold = Terms { on_lapse: OnLapse::Hold, ..terms() };
    let permit = granted(&engine, &op("k"), &hold).await;
    let fence = permit.lease().fence;
    drop(permit); // a crash: nothing renews or ends it
    let doubt = loop {
        match engine.claim(&op("k"), &hold).await.unwrap() {
            Claim::InFlight { .. } => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert!(matches!(doubt, Claim::InDoubt { fence: seen } if seen == fence), "{doubt:?}");
}

#[tokio::test]
async fn a_lost_reply_to_a_claim_is_adopted_by_its_second_copy() {
    let (engine, faults) = engine();
    faults.once(Call::Claim, Fault::LosesReply);
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert_eq!(permit.lease().attempt, 1);
    assert_eq!(faults.calls(Call::Claim), 2);
}

#[tokio::test]
async fn a_claim_of_unknown_fate_is_withdrawn() {
    let (engine, faults) = engine();
    faults.set(Call::Claim, Fault::LosesReply);
    let error = engine.claim(&op("k"), &terms()).await.unwrap_err();
    assert!(matches!(error, ClaimError::Store(_)));
    faults.mend(Call::Claim);
    faults.reached(Call::Release, 1).await;
    let _ = granted_eventually(&engine, &op("k")).await;
}

#[tokio::test]
async fn a_claim_whose_second_copy_fails_is_withdrawn_for_the_first() {
    let (engine, faults) = engine();
    faults.once(Call::Claim, Fault::LosesReply);
    faults.once(Call::Claim, UNAVAILABLE);
    engine.claim(&op("k"), &terms()).await.unwrap_err();
    faults.reached(Call::Release, 1).await;
    let _ = granted_eventually(&engine, &op("k")).await;
}

#[tokio::test]
async fn a_claim_that_times_out_is_withdrawn_and_refused() {
    let (engine, faults) = engine();
    faults.set(Call::Claim, Fault::Hangs);
    let error = engine.claim(&op("k"), &terms()).await.unwrap_err();
    assert!(matches!(error, ClaimError::Store(error) if error.kind == StoreErrorKind::Unavailable));
    faults.reached(Call::Release, 1).await;
}

#[tokio::test]
async fn a_claim_dropped_on_its_way_is_withdrawn() {
    let (engine, faults) = engine();
    faults.set(Call::Claim, Fault::Hangs);
    let claim = tokio::spawn({
        let engine = engine.clone();
        async move { drop(engine.claim(&op("k"), &terms()).await) }
    });
    faults.reached(Call::Claim, 1).await;
    claim.abort();
    faults.reached(Call::Release, 1).await;
    assert!(claim.await.unwrap_err().is_cancelled());
    assert_eq!(engine.live_runs(), 0);
}

#[tokio::test]
async fn a_claim_known_to_have_failed_is_not_withdrawn() {
    let (engine, faults) = engine();
    faults.set(Call::Claim, UNAVAILABLE);
    engine.claim(&op("k"), &terms()).await.unwrap_err();
    faults.mend(Call::Claim);
    drop(granted(&engine, &op("k"), &terms()).await);
    assert_eq!(faults.calls(Call::Release), 0);
}

#[tokio::test]
async fn a_completion_is_tried_until_the_store_takes_it() {
    let (engine, faults) = engine();
    let permit = granted(&engine, &op("k"), &terms()).await;
    faults.once(Call::Complete, UNAVAILABLE);
    faults.once(Call::Complete, Fault::LosesReply);
    assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
    assert_eq!(faults.calls(Call::Complete), 3);
    assert_eq!(look(&engine, &op("k")).await, Claim::Completed(outcome("x")));
}

#[tokio::test]
async fn a_run_waiting_to_complete_keeps_its_lease() {
    let (engine, faults) = engine();
    let permit = granted(&engine, &op("k"), &terms()).await;
    faults.set(Call::Complete, UNAVAILABLE);
    let completing = tokio::spawn(async move { permit.complete(outcome("x"), tombstone).await });
    faults.reached(Call::Renew, 5).await; // well past the first lease
    assert!(matches!(look(&engine, &op("k")).await, Claim::InFlight { .. }));
    assert_eq!(engine.live_runs(), 1);
    faults.mend(Call::Complete);
    assert!(matches!(completing.await.unwrap(), Completion::Stored));
}

#[tokio::test]
async fn a_completion_given_up_says_that_its_outcome_is_lost() {
    let seen = Arc::new(Seen::default());
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::observed(store, Bounds::default(), Arc::clone(&seen));
    let impatient = Terms { completion_retry: Duration::from_millis(100), ..terms() };
    let permit = granted(&engine, &op("k"), &impatient).await;
    faults.set(Call::Complete, UNAVAILABLE);
    assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Lost(_)));
    let seen = seen.0.lock().unwrap().clone();
    assert!(seen.iter().any(|event| event.starts_with("OutcomeLost")), "{seen:?}");
}

#[tokio::test]
async fn an_outcome_the_store_cannot_hold_becomes_a_tombstone() {
    for kind in [StoreErrorKind::TooLarge, StoreErrorKind::Full] {
        let (engine, faults) = engine();
        let permit = granted(&engine, &op("k"), &terms()).await;
        faults.once(Call::Complete, Fault::Fails(kind));
        assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
        assert_eq!(look(&engine, &op("k")).await, Claim::Completed(tombstone()), "{kind:?}");
    }
}

#[tokio::test]
async fn an_outcome_beyond_the_stores_limit_is_not_even_sent() {
    let store = MemoryStore::builder().max_bytes(1 << 20).build().unwrap();
    let long = Outcome::whole(Media(7), vec![0; store.max_outcome_bytes() + 1]);
    let (store, faults) = Faulty::new(store);
    let engine = Engine::new(store, Bounds::default());
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert!(matches!(permit.complete(long, tombstone).await, Completion::Stored));
    assert_eq!(faults.calls(Call::Complete), 1);
    assert_eq!(look(&engine, &op("k")).await, Claim::Completed(tombstone()));
}

#[tokio::test]
async fn an_ending_is_tried_again_whatever_failed() {
    for kind in
        [StoreErrorKind::Full, StoreErrorKind::Refused, StoreErrorKind::Schema, StoreErrorKind::Corrupt]
    {
        let (engine, faults) = engine();
        let permit = granted(&engine, &op("k"), &terms()).await;
        faults.set(Call::Complete, Fault::Fails(kind));
        let completing = tokio::spawn(async move { permit.complete(outcome("x"), tombstone).await });
        faults.reached(Call::Complete, 3).await;
        faults.mend(Call::Complete);
        assert!(matches!(completing.await.unwrap(), Completion::Stored), "{kind:?}");
        assert!(matches!(look(&engine, &op("k")).await, Claim::Completed(_)));
    }
}

#[tokio::test]
async fn a_memory_store_full_to_the_brim_still_takes_a_tombstone() {
    let store = MemoryStore::builder().max_bytes(64 << 10).build().unwrap();
    let long = Outcome::whole(Media(7), vec![0; store.max_outcome_bytes()]);
    let engine = Engine::new(Faulty::new(store).0, Bounds::default());
    let mut live = Vec::new();
    for number in 0.. {
        match engine.claim(&op(&format!("k{number}")), &terms()).await {
            Ok(Claim::Granted(permit)) => live.push((number, permit)),
            Err(ClaimError::Store(error)) if error.kind == StoreErrorKind::Full => break,
            other => panic!("{other:?}"),
        }
    }
    for (number, permit) in live {
        assert!(matches!(permit.complete(long.clone(), tombstone).await, Completion::Stored));
        assert_eq!(look(&engine, &op(&format!("k{number}"))).await, Claim::Completed(tombstone()));
    }
}

#[tokio::test]
async fn a_claim_answered_after_its_lease_is_withdrawn() {
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::new(store, Bounds { store_timeout: Duration::from_secs(60), ..Bounds::default() });
    faults.set(Call::Claim, Fault::Hangs);
    let claiming = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(&op("k"), &terms()).await.map(drop) }
    });
    faults.reached(Call::Claim, 1).await;
    tokio::time::sleep(terms().lease).await; // what is tested is that this time passes
    faults.mend(Call::Claim);
    assert!(matches!(claiming.await.unwrap(), Err(ClaimError::Store(_))));
    faults.reached(Call::Release, 1).await;
}

#[tokio::test]
async fn terms_that_make_no_sense_claim_nothing() {
    let (engine, faults) = engine();
    for senseless in [
        Terms { lease: Duration::ZERO, ..Terms::default() },
        Terms { max_run: Duration::MAX, ..Terms::default() },
        Terms { retention: Duration::MAX, ..Terms::default() },
    ] {
        assert!(matches!(engine.claim(&op("k"), &senseless).await, Err(ClaimError::Terms(_))));
    }
    assert_eq!(faults.calls(Call::Claim), 0);
}

#[tokio::test]
async fn a_hung_renewal_does_not_outlast_the_lease() {
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::new(store, Bounds { store_timeout: Duration::from_secs(60), ..Bounds::default() });
    let permit = granted(&engine, &op("k"), &terms()).await;
    faults.set(Call::Renew, Fault::Hangs);
    faults.reached(Call::Renew, 1).await;
    faults.set(Call::Renew, Fault::LosesReply); // later ones go through; the hung one stays
    let others = faults.reached(Call::Renew, 4);
    tokio::time::timeout(Duration::from_secs(15), others)
        .await
        .expect("the hung renewal keeps the others back");
    assert!(matches!(engine.claim(&op("k"), &terms()).await, Ok(Claim::InFlight { .. })));
    drop(permit);
}

/// Renews by panicking, once for each run.
#[derive(Debug)]
struct PanickingRenewal(MemoryStore, std::sync::atomic::AtomicUsize);

impl Store for PanickingRenewal {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        self.0.claim(op, bid).await
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        self.0.look(op).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        if self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            // Without the hook: printing a backtrace can take longer than the lease, and holds up the runtime.
            std::panic::resume_unwind(Box::new("a renewal that panics"));
        }
        self.0.renew(lease, term).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        self.0.complete(lease, outcome, keep).await
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        self.0.release(lease, why).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        self.0.purge(at_most).await
    }

    fn max_outcome_bytes(&self) -> usize {
        self.0.max_outcome_bytes()
    }
}

#[tokio::test]
async fn a_renewal_that_panics_ends_no_other() {
    let engine = Engine::new(PanickingRenewal(MemoryStore::new(), 0.into()), Bounds::default());
    let mut permits = Vec::new();
    for key in ["a", "b"] {
        let Ok(Claim::Granted(permit)) = engine.claim(&op(key), &terms()).await else {
            panic!("not granted")
        };
        permits.push(permit);
    }
    while engine.store().1.load(std::sync::atomic::Ordering::SeqCst) < 8 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for permit in &permits {
        assert!(!permit.lease_lost().is_lost());
    }
}

#[test]
fn a_run_is_told_even_when_the_runtime_that_renewed_it_is_gone() {
    let (engine, _) = engine();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    let permit = first.block_on(granted(&engine, &op("a"), &terms()));
    let lost = permit.lease_lost();
    drop(first);
    runtime().block_on(lost.wait());
    assert!(lost.is_lost());
}

#[test]
fn runtimes_renew_their_own_runs() {
    let (engine, faults) = engine();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let one = first.block_on(granted(&engine, &op("a"), &terms()));
    let other = second.block_on(granted(&engine, &op("b"), &terms()));
    first.shutdown_background();
    let seen = faults.calls(Call::Renew);
    second.block_on(faults.reached(Call::Renew, seen + 6));
    assert!(!other.lease_lost().is_lost());
    assert!(one.lease_lost().is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_blocks_its_thread_is_renewed_by_another() {
    let (engine, faults) = engine();
    let blocked = tokio::spawn({
        let engine = engine.clone();
        async move {
            let permit = granted(&engine, &op("k"), &terms()).await;
            std::thread::sleep(4 * terms().lease); // a handler that blocks, as some do
            let lost = permit.lease_lost().is_lost();
            assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
            lost
        }
    });
    faults.reached(Call::Renew, 4).await;
    assert!(!blocked.await.unwrap(), "its lease was kept all the time");
}

#[tokio::test]
async fn ten_thousand_runs_are_renewed_in_time() {
    let (engine, faults) = engine();
    let terms = Terms { lease: Duration::from_secs(6), ..Terms::default() };
    let mut permits = Vec::new();
    for number in 0..10_000 {
        permits.push(granted(&engine, &op(&format!("k{number}")), &terms).await);
    }
    faults.reached(Call::Renew, 20_000).await; // two rounds
    assert!(permits.iter().all(|permit| !permit.lease_lost().is_lost()));
}

#[tokio::test]
async fn releases_free_the_key_or_put_it_in_doubt() {
    let (engine, _) = engine();
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert_eq!(permit.release(Release::NotApplied).await.unwrap(), Settled::Applied);
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert_eq!(permit.lease().attempt, 1);
    let fence = permit.lease().fence;
    assert_eq!(permit.release(Release::Unknown).await.unwrap(), Settled::Applied);
    assert!(
        matches!(engine.claim(&op("k"), &terms()).await, Ok(Claim::InDoubt { fence: seen }) if seen == fence)
    );
}

#[tokio::test]
async fn live_runs_are_bounded_and_drained() {
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::new(store, Bounds { max_live_runs: 1, ..Bounds::default() });
    let permit = granted(&engine, &op("a"), &terms()).await;
    assert!(matches!(engine.claim(&op("b"), &terms()).await, Err(ClaimError::Overloaded { bound: 1 })));
    assert_eq!(faults.calls(Call::Claim), 1, "nothing was claimed beyond the bound");
    assert_eq!(engine.drain(Duration::from_millis(1)).await.left, 1);
    let draining = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drain(Duration::from_secs(60)).await }
    });
    assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
    assert_eq!(draining.await.unwrap().left, 0);
}

#[tokio::test]
async fn an_observer_sees_all_and_its_panics_change_nothing() {
    struct Panics;
    impl Observer for Panics {
        fn observe(&self, _: &Address, _: &Event<'_>) {
            panic!("an observer that panics");
        }
    }
    let engine = Engine::observed(Faulty::new(MemoryStore::new()).0, Bounds::default(), Panics);
    let permit = granted(&engine, &op("k"), &terms()).await;
    assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
}

#[test]
fn the_keeper_outlives_the_runtime_it_began_in() {
    let (engine, faults) = engine();
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    drop(first.block_on(granted(&engine, &op("a"), &terms())));
    drop(first);
    runtime().block_on(async {
        let permit = granted(&engine, &op("b"), &terms()).await;
        faults.reached(Call::Renew, 2).await;
        assert!(!permit.lease_lost().is_lost());
    });
}

/// An observer that wants store calls timed.
struct Timed(Arc<Seen>);

impl Observer for Timed {
    fn observe(&self, address: &Address, event: &Event<'_>) {
        self.0.observe(address, event);
    }

    fn times_store_calls(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn several_observers_see_the_same_whatever_one_of_them_does() {
    struct Panics;
    impl Observer for Panics {
        fn observe(&self, _: &Address, _: &Event<'_>) {
            panic!("an observer that panics");
        }
    }
    for times in [false, true] {
        let seen = [Arc::new(Seen::default()), Arc::new(Seen::default())];
        let [one, other] = seen.clone();
        let engine = |observer: Arc<dyn Observer>| {
            let observers = (Panics, vec![observer, other]);
            Engine::observed(Faulty::new(MemoryStore::new()).0, Bounds::default(), observers)
        };
        let engine = engine(if times { Arc::new(Timed(one)) } else { one });
        let permit = granted(&engine, &op("k"), &Terms::default()).await;
        assert!(matches!(permit.complete(outcome("x"), tombstone).await, Completion::Stored));
        let [first, second] = seen.map(|seen| std::mem::take(&mut *seen.0.lock().unwrap()));
        assert_eq!(first, second);
        let names: Vec<_> = first.iter().map(|event| event.split([' ', '(']).next().unwrap()).collect();
        let calls: &[_] = &["StoreCalled", "Granted", "StoreCalled", "Stored"];
        assert_eq!(names, if times { calls } else { &["Granted", "Stored"] });
    }
}

#[tokio::test]
async fn a_failed_call_is_told_once_with_its_name() {
    let seen = Arc::new(Seen::default());
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::observed(store, Bounds::default(), Arc::clone(&seen));
    faults.once(Call::Claim, Fault::Fails(StoreErrorKind::Corrupt));
    assert!(engine.claim(&op("k"), &Terms::default()).await.is_err());
    let permit = granted(&engine, &op("k"), &Terms::default()).await;
    faults.once(Call::Release, UNAVAILABLE);
    assert!(permit.release(Release::NotApplied).await.is_ok());
    let seen = seen.0.lock().unwrap();
    let failed: Vec<_> = seen.iter().filter(|event| event.starts_with("StoreFailed")).collect();
    assert_eq!(failed.len(), 2, "{seen:?}");
    assert!(failed[0].contains("call: Claim") && failed[1].contains("call: Release"), "{failed:?}");
}

async fn granted_eventually(engine: &Engine<TestStore>, op: &Operation) -> Permit<TestStore> {
    loop {
        if let Claim::Granted(permit) = engine.claim(op, &terms()).await.unwrap() {
            return permit;
        }
        tokio::task::yield_now().await;
    }
}

/// The names of the events seen.
#[derive(Default)]
struct Seen(Mutex<Vec<String>>);

impl Observer for Seen {
    fn observe(&self, _: &Address, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}
