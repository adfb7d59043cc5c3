//! Claim, lease and completion.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Response;
use idempotency_core::{
    Address, Bid, Claim, DynStore, Fingerprint, Holder, Inspect, Keep, Lease, Media, OnLapse, Operation,
    Outcome, Release, Resolution, Select, Settled, Standing, Store, StoreErrorKind,
    clock::{ManualClock, Timestamp},
};
use idempotency_store_contract::faults::{Call, Fault};
use idempotency_store_memory::MemoryStore;
use idempotency_store_sqlite::SqliteStore;
use idempotency_tower::{Ending, OnServerError, Policy, PolicyBuilder, PolicyError};
use tokio::{
    sync::{Barrier, Semaphore},
    task::JoinSet,
    time::Instant,
};

use crate::{
    bench::{Counter, boxed, keyed, ms, shelves, status, with},
    setup::{Door, OwnBody, policy, post, text},
};

const DAY: Duration = Duration::from_secs(86_400);

fn bid(lease: Duration) -> Bid {
    Bid { holder: Holder::draw(), lease, retention: DAY, on_lapse: OnLapse::TakeOver }
}

fn operation() -> Operation {
    Operation::new(Address::from_bytes([7; 32]), Fingerprint::builder().build())
}

/// A door whose runs end when the test says so.
fn gated(policy: PolicyBuilder) -> (Arc<Door>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let door = Door::new(policy, {
        let gate = Arc::clone(&gate);
        move |_| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(Response::new(text("done")))
            })
        }
    });
    (Arc::new(door), gate)
}

async fn until_running(door: &Door) {
    while door.runs() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_001_fifty_copies_at_once_run_once() {
    for shelf in shelves().await {
        let counter = Arc::new(Counter::on(&shelf.store, Policy::builder()));
        for round in 1..=20 {
            let barrier = Arc::new(Barrier::new(50));
            let mut copies = JoinSet::new();
            for _ in 0..50 {
                let (counter, barrier) = (Arc::clone(&counter), Arc::clone(&barrier));
                copies.spawn(async move {
                    barrier.wait().await;
                    counter.send(with(keyed(&round.to_string()), "{}")).await
                });
            }
            let answers = copies.join_all().await;
            let (ran, rest): (Vec<_>, Vec<_>) =
                answers.into_iter().partition(|answer| answer.status == 200 && !answer.is_replay());
            assert_eq!((ran.len(), counter.runs()), (1, round), "{}", shelf.name);
            for copy in rest {
                let same = copy.is_replay() && copy.body == ran[0].body;
                assert!(same || copy.status == 409 && copy.code() == "conflict", "{}: {copy:?}", shelf.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bug_003_a_copy_of_a_slow_run_is_refused_at_once_or_waits_for_its_end() {
    let slow = |policy| {
        Arc::new(Door::new(policy, |_| {
            Box::pin(async {
                tokio::time::sleep(ms(1500)).await;
                Ok(Response::new(text("done")))
            })
        }))
    };
    for (builder, waits) in
        [(Policy::builder(), false), (Policy::builder().wait(Duration::from_secs(5)), true)]
    {
        let door = slow(builder);
        let began = Instant::now();
        let first = tokio::spawn(door.send(post("k", "a")));
        tokio::time::sleep(ms(200)).await;
        let copy = door.send(post("k", "a")).await;
        let took = began.elapsed() - ms(200);
        if waits {
            assert!(copy.is_replay() && copy.body == "done", "{copy:?}");
            assert!((ms(1300)..ms(1600)).contains(&took), "{took:?}");
        } else {
            assert_eq!((copy.status, copy.code().as_str()), (409, "conflict"));
            assert!(took < ms(300), "{took:?}");
        }
        assert_eq!(first.await.unwrap().body, "done");
        assert_eq!(door.runs(), 1);
    }
}

#[tokio::test]
async fn bug_004_a_run_longer_than_its_lease_is_not_run_twice() {
    let (door, gate) = gated(policy().lease(ms(150)));
    let first = tokio::spawn(door.send(post("k", "a")));
    until_running(&door).await;
    for renewals in [4, 8] {
        door.faults.reached(Call::Renew, renewals).await; // every 50 ms, so well past the first lease
        assert_eq!(door.send(post("k", "a")).await.code(), "conflict");
    }
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().body, "done");
    assert!(door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 1);
}

#[tokio::test]
async fn bug_005_an_owner_that_was_taken_over_ends_nothing() {
    for shelf in shelves().await {
        let (store, op) = (&shelf.store, operation());
        let keep = Keep { replay: DAY, then_reject: Duration::ZERO };
        let outcome = |text: &'static str| Outcome::whole(Media(1), text);
        let Claim::Granted(stopped) = store.claim(&op, &bid(ms(1000))).await.unwrap() else { panic!() };
        shelf.clock.advance(ms(1500));
        let Claim::Granted(owner) = store.claim(&op, &bid(ms(5000))).await.unwrap() else { panic!() };
        assert!(owner.fence > stopped.fence && owner.is_takeover());
        let now = store.release(&stopped, Release::NotApplied).await.unwrap();
        assert!(
            matches!(now, Settled::Fenced(Some(Standing { fence, .. })) if fence == owner.fence),
            "{now:?}"
        );
        let late = store.complete(&stopped, &outcome("late"), keep).await.unwrap();
        assert!(matches!(late, Settled::Fenced(_)), "{}: {late:?}", shelf.name);
        assert!(matches!(store.claim(&op, &bid(DAY)).await.unwrap(), Claim::InFlight { .. }));
        assert_eq!(store.complete(&owner, &outcome("owner's"), keep).await.unwrap(), Settled::Applied);
        assert_eq!(store.claim(&op, &bid(DAY)).await.unwrap(), Claim::Completed(outcome("owner's")));
    }
}

#[test]
fn bug_006_every_claim_has_a_token_of_its_own() {
    let drawn: HashSet<_> = (0..10_000).map(|_| Holder::draw()).collect();
    assert_eq!(drawn.len(), 10_000);
}

#[tokio::test]
async fn bug_006_a_loser_that_knows_key_and_payload_ends_nothing() {
    for shelf in shelves().await {
        let (store, op) = (&shelf.store, operation());
        let Claim::Granted(winner) = store.claim(&op, &bid(DAY)).await.unwrap() else { panic!() };
        let lost = bid(DAY);
        assert!(matches!(store.claim(&op, &lost).await.unwrap(), Claim::InFlight { .. }));
        let loser = Lease { holder: lost.holder, ..winner };
        let keep = Keep { replay: DAY, then_reject: Duration::ZERO };
        let stolen = store.complete(&loser, &Outcome::whole(Media(1), "stolen"), keep).await.unwrap();
        assert!(matches!(stolen, Settled::Fenced(_)), "{}", shelf.name);
        for why in [Release::NotApplied, Release::Unknown] {
            assert!(
                matches!(store.release(&loser, why).await.unwrap(), Settled::Fenced(_)),
                "{}",
                shelf.name
            );
        }
        assert!(matches!(store.claim(&op, &bid(DAY)).await.unwrap(), Claim::InFlight { .. }));
    }
}

#[tokio::test]
async fn bug_008_no_lease_is_endless_because_it_is_empty() {
    for lease in [Duration::ZERO, Duration::from_nanos(1), ms(99)] {
        assert_eq!(Policy::builder().lease(lease).build().unwrap_err(), PolicyError::LeaseTooShort);
    }
    for shelf in shelves().await {
        let (store, op) = (&shelf.store, operation());
        assert!(matches!(store.claim(&op, &bid(Duration::ZERO)).await.unwrap(), Claim::Granted(_)));
        let next = store.claim(&op, &bid(DAY)).await.unwrap();
        assert!(matches!(next, Claim::Granted(lease) if lease.is_takeover()), "{}: {next:?}", shelf.name);
    }
}

#[tokio::test]
async fn bug_009_leases_are_written_and_compared_in_one_unit() {
    for shelf in shelves().await {
        let (store, op) = (&shelf.store, operation());
        assert!(matches!(store.claim(&op, &bid(ms(1500))).await.unwrap(), Claim::Granted(_)));
        shelf.clock.advance(ms(1200));
        let at_1200 = store.claim(&op, &bid(ms(1500))).await.unwrap();
        assert_eq!(at_1200, Claim::InFlight { left: ms(300) }, "{}: no rounding to a second", shelf.name);
        shelf.clock.advance(ms(600));
        let at_1800 = store.claim(&op, &bid(ms(1500))).await.unwrap();
        assert!(matches!(at_1800, Claim::Granted(lease) if lease.is_takeover()), "{}", shelf.name);
    }
}

/// A way of answering, and its name.
type Way = (&'static str, fn(usize) -> Response<OwnBody>);

#[tokio::test]
async fn bug_010_every_way_of_answering_completes_the_record() {
    let streamed = |_| {
        let frames = ["one ", "two"].map(|chunk| {
            Ok::<_, crate::setup::BodyError>(http_body::Frame::data(Bytes::from_static(chunk.as_bytes())))
        });
        Response::new(boxed(http_body_util::StreamBody::new(futures_util::stream::iter(frames))))
    };
    let empty = |_| status(204, "");
    let large = |_| Response::new(boxed(http_body_util::Full::from(vec![b'x'; 5000])));
    let headers = |_| Response::builder().header("x-one", "1").body(text("")).unwrap();
    for shelf in shelves().await {
        let ways: [Way; 4] = [("stream", streamed), ("empty", empty), ("large", large), ("headers", headers)];
        for (way, answer) in ways {
            let counter = Counter::answering(&shelf.store, Policy::builder(), answer);
            let first = counter.send(with(keyed(way), "")).await;
            let second = counter.send(with(keyed(way), "")).await;
            assert!(second.is_replay(), "{} {way}: {second:?}", shelf.name);
            assert_eq!((second.status, &second.body, counter.runs()), (first.status, &first.body, 1));
        }
    }
}

#[tokio::test]
async fn bug_012_a_client_that_goes_away_neither_stops_the_run_nor_frees_its_key() {
    let (door, gate) = gated(policy());
    let client = tokio::spawn(door.send(post("k", "a")));
    until_running(&door).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    assert_eq!(door.send(post("k", "a")).await.code(), "conflict", "at once");
    gate.add_permits(1);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay(), "later");
    assert_eq!((door.runs(), door.layer.live_runs()), (1, 0));
}

#[tokio::test]
async fn bug_016_no_passing_5xx_is_pinned_to_a_key_and_every_settled_4xx_is() {
    for (code, runs) in [(500, 2), (503, 2), (404, 1), (410, 1), (422, 1)] {
        let door = Door::answering(policy(), move || status(code, "answer"));
        let first = door.send(post("k", "a")).await;
        let second = door.send(post("k", "a")).await;
        assert_eq!((first.status, second.status), (code, code));
        assert_eq!((second.is_replay(), door.runs()), (runs == 1, runs), "{code}");
    }
}

#[tokio::test]
async fn bug_017_an_error_after_an_effect_runs_again_only_where_that_was_chosen() {
    let effects = Arc::new(AtomicUsize::new(0));
    let fails = |policy, word: Option<Ending>| {
        let effects = Arc::clone(&effects);
        effects.store(0, Ordering::SeqCst);
        Door::answering(policy, move || {
            effects.fetch_add(1, Ordering::SeqCst);
            let mut answer = status(500, "the effect is there, the answer is not");
            if let Some(word) = word {
                answer.extensions_mut().insert(word);
            }
            answer
        })
    };
    let twice = async |door: Door| {
        door.send(post("k", "a")).await;
        door.send(post("k", "a")).await
    };
    assert_eq!(twice(fails(policy(), None)).await.status, 500);
    assert_eq!(effects.load(Ordering::SeqCst), 2, "the documented rule");
    assert_eq!(twice(fails(policy(), Some(Ending::Unknown))).await.code(), "outcome-unknown");
    assert_eq!(effects.load(Ordering::SeqCst), 1, "the handler's own word");
    let held = fails(policy().on_server_error(OnServerError::Hold), None);
    assert_eq!(twice(held).await.code(), "outcome-unknown");
    assert_eq!(effects.load(Ordering::SeqCst), 1, "the policy's");
}

#[tokio::test]
async fn bug_020_two_layers_on_one_store_share_their_keys() {
    for shelf in shelves().await {
        let replicas = [(); 2].map(|()| Counter::on(&shelf.store, Policy::builder()));
        let first = replicas[0].send(with(keyed("k"), "a")).await;
        let second = replicas[1].send(with(keyed("k"), "a")).await;
        assert!(second.is_replay() && second.body == first.body, "{}: {second:?}", shelf.name);
        assert_eq!((replicas[0].runs(), replicas[1].runs()), (1, 0));
    }
}

#[tokio::test]
async fn bug_021_a_store_that_cannot_be_opened_is_an_error_and_no_other_store() {
    let nowhere = SqliteStore::open(Path::new("/nowhere/at/all/records.db")).await;
    assert!(nowhere.is_err());
    let (door, _gate) = gated(policy());
    door.faults.set(Call::Claim, Fault::Fails(StoreErrorKind::Schema));
    let refused = door.send(post("k", "a")).await;
    assert_eq!((refused.status, refused.code().as_str(), door.runs()), (503, "store-unavailable", 0));
}

#[tokio::test]
async fn bug_022_without_the_store_nothing_keyed_runs_unless_that_was_asked_for() {
    for (builder, status, runs) in [(policy(), 503, 0), (policy().fail_open(), 200, 1)] {
        let door = Door::answering(builder, || Response::new(text("done")));
        door.faults.set(Call::Claim, Fault::Fails(StoreErrorKind::Unavailable));
        let keyed = door.send(post("k", "a")).await;
        assert_eq!((keyed.status, door.runs()), (status, runs));
        assert_eq!(keyed.header("idempotency-degraded"), (runs == 1).then_some("true"));
        let mut unkeyed = post("k", "a");
        unkeyed.headers_mut().remove("idempotency-key");
        assert_eq!(door.send(unkeyed).await.status, 200);
        door.faults.mend(Call::Claim);
        let kept = door.send(post("k", "a")).await;
        assert_eq!((kept.status, kept.header("idempotency-degraded")), (200, None));
        assert!(door.send(post("k", "a")).await.is_replay());
    }
}

/// An operator's tool, or somebody with a newer version, wrote what this one cannot read.
#[tokio::test]
async fn bug_024_a_record_that_cannot_be_read_is_neither_run_nor_answered() {
    let foreign: [&[u8]; 4] = [b"\x00\xff", b"", b"\x01\xff\xff\xff\xff", b"\x63"];
    for bytes in foreign {
        let store = MemoryStore::new();
        let counter = Counter::answering(&DynStore::new(store.clone()), Policy::builder(), |_| {
            Response::builder().extension(Ending::Unknown).body(text("done")).unwrap()
        });
        counter.send(with(keyed("k"), "a")).await;
        let [(address, record)] = &store.list(Select::InDoubt, None, 2).await.unwrap()[..] else { panic!() };
        let keep = Keep { replay: DAY, then_reject: Duration::ZERO };
        let resolution = Resolution::Applied(Outcome::whole(Media(1), bytes), keep);
        assert_eq!(store.resolve(address, record.fence, &resolution).await.unwrap(), Settled::Applied);
        let refused = counter.send(with(keyed("k"), "a")).await;
        assert_eq!((refused.status, refused.code().as_str()), (500, "internal"), "{bytes:?}");
        assert_eq!(counter.runs(), 1, "not run again");
        assert!(store.find(address).await.unwrap().is_some(), "and still there to be looked at");
    }
}

#[tokio::test]
async fn bug_026_keys_of_clients_that_left_leave_nothing_behind() {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
    let store = MemoryStore::builder().clock(Arc::clone(&clock)).build().unwrap();
    for round in 0..3 {
        let counter = Counter::on(&DynStore::new(store.clone()), Policy::builder().retention(ms(1000)));
        for number in 0..2_000 {
            let mut request = Box::pin(counter.send(with(keyed(&format!("{round}-{number}")), "a")));
            // Polled once and dropped: its client is gone.
            let _ = futures_util::poll!(&mut request);
        }
        assert_eq!(counter.layer.drain(Duration::from_secs(60)).await.left, 0);
        clock.advance(ms(3000));
        store.purge(u32::MAX).await.unwrap();
        let left = store.list(Select::All, None, u32::MAX).await.unwrap();
        assert_eq!((left.len(), store.records(), store.bytes()), (0, 0, 0), "round {round}");
    }
}
