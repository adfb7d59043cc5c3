//! How long records live, and what stores do under load.

use std::{sync::Arc, time::Duration};

use http::Response;
use idempotency_core::{
    Bid, Claim, Door as DoorKind, Fingerprint, Holder, Key, OnLapse, Operation, Scope, Store,
};
use idempotency_store_contract::faults::{Call, Fault};
use idempotency_store_sqlite::SqliteStore;
use idempotency_tower::{IdempotencyLayer, Policy, PolicyError};
use tokio::{sync::Barrier, task::JoinSet};
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    bench::{Counter, keyed, ms, read, shelves, with},
    setup::{Door, policy, post, text},
};

#[tokio::test]
async fn bug_018_replays_do_not_lengthen_a_records_life() {
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, Policy::builder().retention(ms(1500)));
        counter.send(with(keyed("k"), "a")).await;
        for _ in 0..4 {
            shelf.clock.advance(ms(300));
            assert!(counter.send(with(keyed("k"), "a")).await.is_replay(), "{}", shelf.name);
        }
        shelf.clock.advance(ms(1000)); // 2.2 s
        assert!(!counter.send(with(keyed("k"), "a")).await.is_replay());
        assert_eq!(counter.runs(), 2, "{}", shelf.name);
    }
}

#[tokio::test]
async fn bug_027_after_its_life_a_key_is_new_or_refused_as_chosen() {
    for shelf in shelves().await {
        for (key, body) in [("same", "a"), ("other", "b")] {
            let counter = Counter::on(&shelf.store, Policy::builder().retention(ms(1500)));
            counter.send(with(keyed(key), "a")).await;
            shelf.clock.advance(ms(2000));
            assert_eq!(counter.send(with(keyed(key), body)).await.body, "2", "{} {key}", shelf.name);
            let rejecting = Policy::builder().retention(ms(1500)).reject_expired_keys_for(ms(10_000));
            let counter = Counter::on(&shelf.store, rejecting);
            let key = format!("refused-{key}");
            counter.send(with(keyed(&key), "a")).await;
            shelf.clock.advance(ms(2000));
            let refused = counter.send(with(keyed(&key), body)).await;
            assert_eq!((refused.status, refused.code().as_str(), counter.runs()), (410, "key-expired", 1));
        }
    }
}

/// The pool of the store is one connection, and each run needs it.
#[tokio::test]
async fn bug_084_no_connection_is_held_while_a_handler_runs() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("records.db")).await.unwrap();
    let all_run = Arc::new(Barrier::new(20));
    let handler = service_fn({
        let store = store.clone();
        move |request: http::Request<_>| {
            let (store, all_run) = (store.clone(), Arc::clone(&all_run));
            let path = request.uri().path().to_owned();
            async move {
                all_run.wait().await;
                let key = Key::new(path).unwrap();
                let address = idempotency_core::Address::new(DoorKind::Queue, &Scope::shared(), &key);
                let op = Operation::new(address, Fingerprint::builder().build());
                let second = Duration::from_secs(1);
                let bid = Bid {
                    holder: Holder::draw(),
                    lease: second,
                    retention: second,
                    on_lapse: OnLapse::TakeOver,
                };
                assert!(matches!(store.claim(&op, &bid).await.unwrap(), Claim::Granted(_)));
                Ok::<_, std::convert::Infallible>(Response::new(text("done")))
            }
        }
    });
    let policy = Policy::builder().wait(Duration::from_secs(5)).build().unwrap();
    let layer = IdempotencyLayer::with_policy(store, policy);
    let service = layer.layer(
        tower::ServiceBuilder::new()
            .map_request(
                |request: http::Request<
                    idempotency_tower::RequestBody<http_body_util::Full<bytes::Bytes>>,
                >| { request },
            )
            .service(handler),
    );
    let mut requests = JoinSet::new();
    for _ in 0..2 {
        for number in 0..20 {
            let answer =
                service.clone().oneshot(with(keyed(&number.to_string()).uri(format!("/{number}")), "a"));
            requests.spawn(async { read(answer.await.unwrap()).await });
        }
    }
    let answers = tokio::time::timeout(Duration::from_secs(5), requests.join_all()).await.unwrap();
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(answers.iter().filter(|answer| answer.is_replay()).count(), 20);
}

#[tokio::test]
async fn bug_087_a_store_locked_at_the_completion_loses_nothing() {
    let door = Door::answering(policy(), || Response::new(text("done")));
    door.faults.set(Call::Complete, Fault::Fails(idempotency_core::StoreErrorKind::Unavailable));
    assert_eq!(door.send(post("k", "a")).await.body, "done", "the answer is sent");
    door.faults.reached(Call::Complete, 3).await;
    door.faults.mend(Call::Complete);
    assert_eq!(door.layer.drain(Duration::from_secs(60)).await.left, 0);
    assert!(door.send(post("k", "a")).await.is_replay());
    assert_eq!(door.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_089_an_expired_record_is_taken_by_one_of_fifty() {
    for shelf in shelves().await {
        let counter = Arc::new(Counter::on(&shelf.store, Policy::builder().retention(ms(600))));
        counter.send(with(keyed("k"), "a")).await;
        shelf.clock.advance(ms(900));
        let barrier = Arc::new(Barrier::new(50));
        let mut racers = JoinSet::new();
        for _ in 0..50 {
            let (counter, barrier) = (Arc::clone(&counter), Arc::clone(&barrier));
            racers.spawn(async move {
                barrier.wait().await;
                counter.send(with(keyed("k"), "a")).await
            });
        }
        let answers = racers.join_all().await;
        assert_eq!(counter.runs(), 2, "{}", shelf.name);
        let ran = answers.iter().filter(|answer| answer.status == 200 && !answer.is_replay());
        assert_eq!(ran.count(), 1);
        assert!(
            answers.iter().all(|answer| answer.body == "2" || answer.code() == "conflict"),
            "{answers:?}"
        );
    }
}

#[tokio::test]
async fn bug_090_no_life_is_so_long_that_it_is_over_at_once() {
    let year = Duration::from_secs(365 * 24 * 60 * 60);
    assert_eq!(Policy::builder().retention(Duration::ZERO).build().unwrap_err(), PolicyError::NoRetention);
    for endless in [year * 101, Duration::from_millis(u64::MAX), Duration::MAX] {
        assert_eq!(Policy::builder().retention(endless).build().unwrap_err(), PolicyError::TooLong);
    }
    for life in [year * 100, Duration::from_secs(1 << 31)] {
        for shelf in shelves().await {
            let counter = Counter::on(&shelf.store, Policy::builder().retention(life));
            counter.send(with(keyed("k"), "a")).await;
            shelf.clock.advance(life - ms(1));
            assert!(counter.send(with(keyed("k"), "a")).await.is_replay(), "{} {life:?}", shelf.name);
            shelf.clock.advance(ms(1));
            assert!(!counter.send(with(keyed("k"), "a")).await.is_replay(), "{} {life:?}", shelf.name);
        }
    }
}
