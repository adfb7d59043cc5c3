//! Copies that wait: one asks for all, all get the same answer, one at most takes over.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{future::Future, sync::Arc, time::Duration};

use idempotency_core::{
    Address, Bid, Claim, ClaimError, Completion, Door, Engine, Fingerprint, Holder, Keep, Key, Media, Notify,
    OnLapse, Operation, Outcome, Part, Permit, Release, Scope, Store, StoreErrorKind,
    policy::{Bounds, Terms},
};
use idempotency_store_contract::faults::{Call, Fault, Faults, Faulty};
use idempotency_store_memory::MemoryStore;
use tokio::task::{JoinHandle, JoinSet};

type TestStore = Faulty<MemoryStore>;
type Waited = Result<Claim<Permit<TestStore>>, ClaimError>;

const LONG: Duration = Duration::from_secs(60);

fn op(body: &[u8]) -> Operation {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new("k").unwrap());
    Operation::new(address, Fingerprint::builder().part(Part::Body, body).build())
}

fn outcome() -> Outcome {
    Outcome::whole(Media(7), "done")
}

fn engine(bounds: Bounds) -> (Engine<TestStore>, Faults) {
    let (store, faults) = Faulty::new(MemoryStore::new());
    (Engine::new(store, bounds), faults)
}

async fn first(engine: &Engine<TestStore>) -> Permit<TestStore> {
    match engine.claim_within(&op(b"1"), &Terms::default(), LONG).await.unwrap() {
        Claim::Granted(permit) => permit,
        other => panic!("not granted: {other:?}"),
    }
}

fn wait(engine: &Engine<TestStore>, body: &'static [u8], patience: Duration) -> JoinHandle<Waited> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.claim_within(&op(body), &Terms::default(), patience).await })
}

async fn until_waiting(engine: &Engine<TestStore>, waiters: usize) {
    while engine.waiters() < waiters {
        tokio::task::yield_now().await;
    }
}

async fn complete(permit: Permit<TestStore>) {
    assert!(matches!(permit.complete(outcome(), outcome).await, Completion::Stored));
}

#[tokio::test]
async fn a_thousand_waiters_get_one_answer_and_ask_the_store_for_it_once() {
    let (engine, faults) = engine(Bounds { max_waiters_per_key: 1_000, ..Bounds::default() });
    let permit = first(&engine).await;
    let mut waiters = JoinSet::new();
    for _ in 0..1_000 {
        let engine = engine.clone();
        waiters.spawn(async move { engine.claim_within(&op(b"1"), &Terms::default(), LONG).await });
    }
    until_waiting(&engine, 1_000).await;
    complete(permit).await;
    while let Some(waited) = waiters.join_next().await {
        assert!(matches!(waited.unwrap(), Ok(Claim::Completed(o)) if o == outcome()));
    }
    let asked = faults.calls(Call::Claim) + faults.calls(Call::Look);
    assert!(asked <= 4, "{asked} questions for a thousand waiters");
}

#[tokio::test]
async fn copies_that_arrive_together_claim_once() {
    let (engine, faults) = engine(Bounds::default());
    let copies: Vec<_> = (0..50).map(|_| wait(&engine, b"1", LONG)).collect();
    let mut replays = 0;
    for copy in copies {
        match copy.await.unwrap().unwrap() {
            Claim::Granted(permit) => complete(permit).await,
            Claim::Completed(_) => replays += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(replays, 49);
    assert!(faults.calls(Call::Claim) <= 2, "{} claims", faults.calls(Call::Claim));
}

#[tokio::test]
async fn a_release_makes_one_waiter_the_next_claimer() {
    let (engine, faults) = engine(Bounds::default());
    let permit = first(&engine).await;
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let engine = engine.clone();
        waiters.spawn(async move { engine.claim_within(&op(b"1"), &Terms::default(), LONG).await });
    }
    until_waiting(&engine, 20).await;
    let _ = permit.release(Release::NotApplied).await.unwrap();
    let Ok(Claim::Granted(next)) = waiters.join_next().await.unwrap().unwrap() else {
        panic!("nobody took over")
    };
    assert!(faults.calls(Call::Claim) <= 3, "{} claims", faults.calls(Call::Claim));
    complete(next).await;
    while let Some(waited) = waiters.join_next().await {
        assert!(matches!(waited.unwrap(), Ok(Claim::Completed(_))));
    }
    assert!(faults.calls(Call::Claim) <= 3, "{} claims", faults.calls(Call::Claim));
}

#[tokio::test]
async fn beyond_a_bound_a_copy_does_not_wait() {
    for bounds in [
        Bounds { max_waiters_per_key: 2, ..Bounds::default() },
        Bounds { max_waiters: 2, ..Bounds::default() },
    ] {
        let (engine, _) = engine(bounds);
        let permit = first(&engine).await;
        let waiting = [wait(&engine, b"1", LONG), wait(&engine, b"1", LONG)];
        until_waiting(&engine, 2).await;
        assert!(matches!(wait(&engine, b"1", LONG).await.unwrap(), Ok(Claim::InFlight { .. })));
        complete(permit).await;
        for waiter in waiting {
            assert!(matches!(waiter.await.unwrap(), Ok(Claim::Completed(_))));
        }
    }
}

#[tokio::test]
async fn a_waiter_out_of_patience_is_told_the_lease_left() {
    let (engine, _) = engine(Bounds::default());
    let _permit = first(&engine).await;
    let waited = wait(&engine, b"1", Duration::from_millis(50)).await.unwrap().unwrap();
    assert!(matches!(waited, Claim::InFlight { left } if left > Duration::from_secs(20)), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn flights_begin_and_end_while_others_look_for_them() {
    let (engine, _) = engine(Bounds::default());
    complete(first(&engine).await).await;
    let mut claimers = JoinSet::new();
    for number in 0..4 {
        let engine = engine.clone();
        let body: &[u8] = if number % 2 == 0 { b"1" } else { b"2" };
        claimers.spawn(async move {
            for _ in 0..20_000 {
                let _ = engine.claim_within(&op(body), &Terms::default(), LONG).await;
            }
        });
    }
    while let Some(claimed) = claimers.join_next().await {
        claimed.unwrap();
    }
    assert_eq!(engine.waiters(), 0);
}

#[tokio::test]
async fn patience_without_end_is_no_error() {
    let (engine, _) = engine(Bounds::default());
    let claim = engine.claim_within(&op(b"1"), &Terms::default(), Duration::MAX).await;
    assert!(matches!(claim, Ok(Claim::Granted(_))));
}

#[tokio::test]
async fn another_payload_does_not_wait() {
    let (engine, _) = engine(Bounds::default());
    let permit = first(&engine).await;
    let waiting = wait(&engine, b"1", LONG);
    until_waiting(&engine, 1).await;
    assert!(matches!(wait(&engine, b"2", LONG).await.unwrap(), Ok(Claim::Mismatch(_))));
    complete(permit).await;
    assert!(matches!(waiting.await.unwrap(), Ok(Claim::Completed(_))));
}

#[tokio::test]
async fn a_waiter_that_leaves_passes_its_turn_on() {
    let (engine, faults) = engine(Bounds::default());
    let permit = first(&engine).await;
    let scout = wait(&engine, b"1", LONG);
    faults.reached(Call::Look, 1).await; // it is the one that asks
    let next = wait(&engine, b"1", LONG);
    scout.abort();
    assert!(scout.await.unwrap_err().is_cancelled());
    faults.reached(Call::Look, faults.calls(Call::Look) + 1).await; // and now the next one does
    complete(permit).await;
    assert!(matches!(next.await.unwrap(), Ok(Claim::Completed(_))));
}

#[tokio::test]
async fn a_run_of_another_process_is_found_by_looking() {
    let (engine, faults) = engine(Bounds::default());
    let bid = Bid { holder: Holder::draw(), lease: LONG, retention: LONG, on_lapse: OnLapse::TakeOver };
    let Claim::Granted(lease) = engine.store().claim(&op(b"1"), &bid).await.unwrap() else {
        panic!("not granted")
    };
    let waiting = wait(&engine, b"1", LONG);
    faults.reached(Call::Look, 2).await;
    let keep = Keep { replay: LONG, then_reject: Duration::ZERO };
    let _ = engine.store().complete(&lease, &outcome(), keep).await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Ok(Claim::Completed(_))));
    assert_eq!(faults.calls(Call::Claim), 2, "the other process's and the waiter's");
}

#[tokio::test]
async fn a_lapse_elsewhere_is_taken_over_by_one_waiter() {
    let (engine, _) = engine(Bounds::default());
    let lease = Duration::from_millis(150);
    let bid = Bid { holder: Holder::draw(), lease, retention: LONG, on_lapse: OnLapse::TakeOver };
    let Claim::Granted(_) = engine.store().claim(&op(b"1"), &bid).await.unwrap() else {
        panic!("not granted")
    };
    let mut waiters = JoinSet::new();
    for _ in 0..5 {
        let engine = engine.clone();
        waiters.spawn(async move { engine.claim_within(&op(b"1"), &Terms::default(), LONG).await });
    }
    let Ok(Claim::Granted(permit)) = waiters.join_next().await.unwrap().unwrap() else {
        panic!("nobody took over")
    };
    assert!(permit.lease().is_takeover());
    complete(permit).await;
    while let Some(waited) = waiters.join_next().await {
        assert!(matches!(waited.unwrap(), Ok(Claim::Completed(_))));
    }
}

#[tokio::test]
async fn a_store_that_fails_fails_for_all_who_wait() {
    let (engine, faults) = engine(Bounds { store_timeout: Duration::from_millis(300), ..Bounds::default() });
    faults.set(Call::Claim, Fault::Hangs);
    let copies: Vec<_> = (0..20).map(|_| wait(&engine, b"1", LONG)).collect();
    for copy in copies {
        assert!(
            matches!(copy.await.unwrap(), Err(ClaimError::Store(error)) if error.kind == StoreErrorKind::Unavailable)
        );
    }
    assert!(faults.calls(Call::Claim) <= 2, "{} claims", faults.calls(Call::Claim));
    faults.mend(Call::Claim);
    complete(first(&engine).await).await;
}

#[tokio::test]
async fn waiters_hold_no_place_among_the_live_runs() {
    let (engine, _) = engine(Bounds { max_live_runs: 1, ..Bounds::default() });
    let permit = first(&engine).await;
    let waiting = wait(&engine, b"1", LONG);
    until_waiting(&engine, 1).await;
    assert_eq!(engine.live_runs(), 1);
    complete(permit).await;
    assert!(matches!(waiting.await.unwrap(), Ok(Claim::Completed(_))));
    assert_eq!(engine.live_runs(), 0);
}

/// Wakes whoever waits, when the test says so.
#[derive(Clone, Default)]
struct Bell(Arc<tokio::sync::Notify>);

impl Notify for Bell {
    fn ended(&self, _: &Address) -> impl Future<Output = ()> + Send {
        self.0.notified()
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_wakes_waiters_before_their_pause_is_over() {
    let (store, faults) = Faulty::new(MemoryStore::new());
    let bell = Bell::default();
    let engine = Engine::new(store, Bounds::default()).woken_by(bell.clone());
    let _permit = first(&engine).await;
    let waiting = wait(&engine, b"1", LONG);
    until_waiting(&engine, 1).await;
    let begun = tokio::time::Instant::now();
    bell.0.notify_one();
    faults.reached(Call::Look, 1).await;
    assert_eq!(begun.elapsed(), Duration::ZERO, "no pause was slept");
    waiting.abort();
}

/// Says of every record that it may have ended.
struct Rash;

impl Notify for Rash {
    async fn ended(&self, _: &Address) {}
}

/// A record that cannot be read has not ended, and a port may take it for one that has.
#[tokio::test]
async fn a_store_that_cannot_say_what_ended_is_not_asked_without_a_pause() {
    let (store, faults) = Faulty::new(MemoryStore::new());
    let engine = Engine::new(store, Bounds::default()).woken_by(Rash);
    let _permit = first(&engine).await;
    faults.set(Call::Look, Fault::Fails(StoreErrorKind::Corrupt));
    let waited = wait(&engine, b"1", Duration::from_millis(200)).await.unwrap();
    assert!(matches!(waited, Ok(Claim::InFlight { .. })), "{waited:?}");
    // One for the wake, and some after pauses of 50 ms and more.
    assert!(faults.calls(Call::Look) <= 4, "{} looks", faults.calls(Call::Look));
}
