//! What opening a store refuses, and what it only says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::error::Error;

use idempotency_core::{
    Claim, Fate, Inspect, LedgerStore, Motion, Notify, Release, Resolution, Revision, Select, Settled,
    Sheets, Store, StoreError, StoreErrorKind,
};
use idempotency_services::Server;
use idempotency_store_redis::{Eviction, OpenError, RedisStore};
use scene::{Records, bid, builder, claim, keep, operation, outcome, server};

const EVICTING: [&str; 7] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

#[tokio::test]
async fn a_server_that_removes_keys_is_refused_unless_that_is_accepted() {
    let Some(server) = server(&["--maxmemory", "40mb"]) else { return };
    let records = Records::on(&server);
    assert_eq!(*records.store().await.eviction(), Eviction::Never);
    for policy in EVICTING {
        records.beside().ask::<()>(&format!("CONFIG SET maxmemory-policy {policy}"));
        let error = RedisStore::connect(records.url()).await.unwrap_err();
        assert!(matches!(&error, OpenError::Evicts { policy: found } if found == policy), "{error:?}");
        assert!(error.to_string().contains(policy) && error.to_string().contains("noeviction"), "{error}");
        let error = StoreError::from(error);
        assert_eq!((error.kind, error.fate), (StoreErrorKind::Refused, Fate::NotApplied));
        let store = records.open(builder().accept_eviction()).await;
        assert_eq!(*store.eviction(), Eviction::By(policy.to_owned()));
        claim(&store, policy).await;
    }
}

/// Why such a server is refused.
#[tokio::test]
async fn a_server_that_removes_keys_lets_an_operation_run_again() {
    let Some(server) = server(&["--maxmemory", "16mb", "--maxmemory-policy", "volatile-ttl"]) else { return };
    let records = Records::on(&server);
    let store = records.open(builder().accept_eviction()).await;
    let lease = claim(&store, "k").await;
    assert_eq!(store.complete(&lease, &outcome(), keep(scene::DAY)).await.unwrap(), Settled::Applied);
    let replay = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(replay, Claim::Completed(outcome()));

    let mut neighbour = records.beside();
    neighbour.ask::<()>("SETRANGE much 20000000 more");
    assert!(store.claim(&operation("other", b"body"), &bid()).await.is_err(), "there was room");
    neighbour.ask::<()>("DEL much");
    claim(&store, "k").await;
}

#[tokio::test]
async fn a_server_that_does_not_say_is_taken_at_its_word_for_nothing() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    records.beside().ask::<()>("ACL SETUSER clerk on >secret ~* &* +@all -info");
    let url = records.url().replace("redis://", "redis://clerk:secret@");
    let store = records.open_at(builder(), &url).await;
    assert_eq!(*store.eviction(), Eviction::Unknown);
    claim(&store, "k").await;
}

#[tokio::test]
async fn a_node_of_a_cluster_is_not_taken_for_a_server() {
    let Some(url) = Server::RedisCluster.url() else { return };
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Cluster), "{error:?}");
}

#[tokio::test]
async fn a_cluster_is_found_through_any_of_its_nodes_that_answers() {
    let Some(url) = Server::RedisCluster.url() else { return };
    let store = builder().connect_cluster(["redis://127.0.0.1:1/", &url]).await.unwrap();
    assert_eq!(*store.eviction(), Eviction::Never);
    let error = builder().connect_cluster(["redis://127.0.0.1:1/"]).await.unwrap_err();
    assert_eq!(StoreError::from(error).kind, StoreErrorKind::Unavailable);
    let nodes: [&str; 0] = [];
    builder().connect_cluster(nodes).await.unwrap_err();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let error = RedisStore::connect("redis://127.0.0.1:1/").await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_)), "{error:?}");
    assert!(error.source().unwrap().is::<redis::RedisError>());
    let error = StoreError::from(error);
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied));
}

#[tokio::test]
async fn what_names_no_server_is_refused_without_being_shown() {
    for url in ["", "redis:/", "http://secret@127.0.0.1/", "redis://:secret@host:notaport/"] {
        let error = RedisStore::connect(url).await.unwrap_err();
        assert!(matches!(error, OpenError::Url(_)), "{url}: {error:?}");
        let mut said = format!("{error:?}");
        let mut next: Option<&dyn Error> = Some(&error);
        while let Some(error) = next {
            said += &error.to_string();
            next = error.source();
        }
        assert!(!said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn a_prefix_is_a_store_s_own() {
    let Some(records) = Records::on_the_server() else { return };
    for prefix in ["", &"x".repeat(257)] {
        let error = builder().prefix(prefix).connect(records.url()).await.unwrap_err();
        assert!(matches!(error, OpenError::Prefix), "{error:?}");
    }
    let store = records.store().await;
    claim(&store, "k").await;
    let other = Records::on_the_server().unwrap();
    claim(&other.store().await, "k").await;
}

#[tokio::test]
async fn a_database_is_chosen_by_its_number() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let elsewhere = records.open_at(builder(), &format!("{}5", records.url())).await;
    claim(&elsewhere, "k").await;
    claim(&records.store().await, "k").await;
    assert_eq!(records.beside().ask::<u64>("DBSIZE"), 1);
}

/// A store of a user with the rights that the README names, and with those for ledgers.
async fn store_of_a_shop(records: &Records) -> RedisStore {
    let readme = include_str!("../README.md");
    let between = |begin, end| readme.split_once(begin).unwrap().1.split_once(end).unwrap().0;
    let rights = [between("ACL SETUSER shop ", "```"), between("and for ledgers `", "`")].join(" ");
    let rights: Vec<&str> = rights.split_whitespace().collect();
    let rights = rights.join(" ").replace("idempotency:", records.prefix());
    records.beside().ask::<()>(&format!("ACL SETUSER shop resetchannels {rights}"));
    let url = records.url().replace("redis://", "redis://shop:secret@");
    records.open_at(builder(), &url).await
}

fn assert_nothing_was_denied(records: &Records) {
    let denied: Vec<redis::Value> = records.beside().ask("ACL LOG");
    assert!(denied.is_empty(), "{denied:?}");
}

#[tokio::test]
async fn a_user_with_the_rights_that_are_needed_can_keep_a_ledger() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let ledger = store_of_a_shop(&records).await.ledger().prefix(records.prefix());
    let sheet = |text: Option<&str>| [("a".to_owned(), text.map(str::to_owned))].into();
    let write = |sheets, settled| Revision { head: "{}".to_owned(), sheets, settled };
    for revision in [write(sheet(Some("{}")), true), write(sheet(None), false), write(sheet(Some("1")), true)]
    {
        ledger.transact("scope", &[], |_, _| Motion::Write(revision.clone(), ())).await.unwrap();
    }
    for sheets in [Sheets::All, Sheets::Named(&["a".to_owned()])] {
        let (folio, _) = ledger.read("scope", sheets).await.unwrap();
        assert_eq!((folio.head.as_deref(), folio.sheets["a"].as_str()), (Some("{}"), "1"));
    }
    assert_nothing_was_denied(&records);
}

#[tokio::test]
async fn a_user_with_the_rights_that_are_needed_can_do_everything() {
    let Some(server) = server(&[]) else { return };
    let records = Records::on(&server);
    let store = store_of_a_shop(&records).await;
    assert_eq!(*store.eviction(), Eviction::Never);

    let lease = claim(&store, "k").await;
    store.ended(&lease.address).await; // wakes when the subscription begins
    assert_eq!(store.renew(&lease, scene::DAY).await.unwrap(), Settled::Applied);
    assert_eq!(store.release(&lease, Release::Unknown).await.unwrap(), Settled::Applied);
    for select in [Select::All, Select::InDoubt] {
        assert_eq!(store.list(select, None, 10).await.unwrap().len(), 1);
    }
    let resolved = store.resolve(&lease.address, lease.fence, &Resolution::NotApplied).await.unwrap();
    assert_eq!(resolved, Settled::Applied);
    let lease = claim(&store, "k").await;
    assert_eq!(store.complete(&lease, &outcome(), keep(scene::DAY)).await.unwrap(), Settled::Applied);
    assert_nothing_was_denied(&records);
}
