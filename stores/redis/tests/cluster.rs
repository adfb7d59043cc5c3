//! A cluster whose slots move and whose nodes come and go.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use idempotency_core::{Address, Claim, Fate, Inspect, Select, Settled, Store, StoreErrorKind};
use idempotency_services::RedisServer;
use idempotency_store_redis::RedisStore;
use redis::{Connection, cmd};
use scene::{DAY, Records, bid, builder, claim, keep, operation, outcome, server};

const SLOTS: u16 = 16_384;

/// A cluster of a test's own: every slot on the first node, none on the second.
struct Cluster {
    nodes: [RedisServer; 2],
}

impl Cluster {
    fn start() -> Option<Self> {
        let node = || server(&["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
        let cluster = Self { nodes: [node()?, node()?] };
        let [first, second] = &cluster.nodes;
        assert_eq!(first.ask(&format!("CLUSTER ADDSLOTSRANGE 0 {}", SLOTS - 1)), "+OK");
        assert_eq!(second.ask("CLUSTER SET-CONFIG-EPOCH 2"), "+OK");
        assert_eq!(first.ask(&format!("CLUSTER MEET {}", second.address().replace(':', " "))), "+OK");
        for node in &cluster.nodes {
            until(|| {
                let info = node.ask("CLUSTER INFO");
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2")
            });
        }
        Some(cluster)
    }

    async fn store(&self) -> RedisStore {
        builder().connect_cluster(self.nodes.each_ref().map(RedisServer::url)).await.unwrap()
    }

    fn beside(&self, node: usize) -> Connection {
        redis::Client::open(self.nodes[node].url()).unwrap().get_connection().unwrap()
    }

    fn id(&self, node: usize) -> String {
        cmd("CLUSTER").arg("MYID").query(&mut self.beside(node)).unwrap()
    }

    /// The slot of a record whose key begins as keys do by default.
    fn slot_of(&self, address: &Address) -> u16 {
        let digits: String = address.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let key = format!("idempotency:{digits}");
        cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut self.beside(0)).unwrap()
    }

    /// Moves a slot from the first node to the second, key by key, as `redis-cli --cluster reshard` does.
    fn move_slot(&self, slot: u16, [from, to]: &mut [Connection; 2], ids: &[String; 2]) {
        let set = |node: &mut Connection, state: &str, id: &String| {
            cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(state).arg(id).exec(node).unwrap();
        };
        set(to, "IMPORTING", &ids[0]);
        set(from, "MIGRATING", &ids[1]);
        let (host, port) =
            self.nodes[1].address().split_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())).unwrap();
        loop {
            let keys: Vec<String> =
                cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(10).query(from).unwrap();
            if keys.is_empty() {
                break;
            }
            let mut migrate = cmd("MIGRATE");
            migrate.arg(&host).arg(&port).arg("").arg(0).arg(5_000).arg("KEYS").arg(keys);
            migrate.exec(from).unwrap();
        }
        set(to, "NODE", &ids[1]);
        set(from, "NODE", &ids[1]);
    }
}

fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_in_the_midst_of_a_load_cost_no_error_and_no_record() {
    let Some(cluster) = Cluster::start() else { return };
    let cluster = Arc::new(cluster);
    let store = cluster.store().await;
    let moving = Arc::new(AtomicBool::new(true));
    let mut load = tokio::task::JoinSet::new();
    for caller in 0..8 {
        let (store, moving) = (store.clone(), Arc::clone(&moving));
        load.spawn(async move {
            let mut keys = Vec::new();
            while moving.load(Ordering::Relaxed) {
                let key = format!("{caller}.{}", keys.len());
                let lease = claim(&store, &key).await;
                tokio::task::yield_now().await;
                let settled = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
                assert_eq!(settled, Settled::Applied, "{key}");
                keys.push(key);
            }
            keys
        });
    }
    let movers = Arc::clone(&cluster);
    let moved = tokio::task::spawn_blocking(move || {
        let ids = [movers.id(0), movers.id(1)];
        let mut nodes = [movers.beside(0), movers.beside(1)];
        for slot in 0..SLOTS / 64 {
            movers.move_slot(slot, &mut nodes, &ids);
        }
    });
    moved.await.unwrap();
    moving.store(false, Ordering::Relaxed);
    let keys: Vec<String> = load.join_all().await.into_iter().flatten().collect();
    let records = store.list(Select::All, None, u32::MAX).await.unwrap();
    let listed: BTreeSet<_> = records.into_iter().map(|(address, _)| address).collect();
    let wanted: BTreeSet<_> = keys.iter().map(|key| *operation(key, b"body").address()).collect();
    assert_eq!(listed, wanted);
    for key in keys {
        let seen = store.claim(&operation(&key, b"body"), &bid()).await.unwrap();
        assert_eq!(seen, Claim::Completed(outcome()), "{key}");
    }
    let errors: String = cmd("INFO").arg("errorstats").query(&mut cluster.beside(0)).unwrap();
    assert!(errors.contains("errorstat_MOVED"), "no call met a move: {errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_finds_a_node_that_got_its_first_slot_meanwhile() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store().await;
    let lease = claim(&store, "k").await;
    let slot = cluster.slot_of(&lease.address);
    let ids = [cluster.id(0), cluster.id(1)];
    cluster.move_slot(slot, &mut [cluster.beside(0), cluster.beside(1)], &ids);
    let listed = store.list(Select::All, None, 10).await.unwrap();
    assert_eq!(listed.into_iter().map(|(address, _)| address).collect::<Vec<_>>(), [lease.address]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_about_to_move_is_claimed_where_it_will_be() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store().await;
    let op = operation("k", b"body");
    let slot = cluster.slot_of(op.address());
    for (node, state, other) in [(1, "IMPORTING", 0), (0, "MIGRATING", 1)] {
        let id = cluster.id(other);
        cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(state).arg(id).exec(&mut cluster.beside(node)).unwrap();
    }
    let lease = claim(&store, "k").await;
    assert_eq!(store.complete(&lease, &outcome(), keep(DAY)).await.unwrap(), Settled::Applied);
    assert_eq!(store.claim(&op, &bid()).await.unwrap(), Claim::Completed(outcome()));
    let keys = |node| {
        cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot).query::<u64>(&mut cluster.beside(node)).unwrap()
    };
    assert_eq!((keys(0), keys(1)), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_lost_a_node_is_unavailable_and_works_again_with_it() {
    let Some(mut cluster) = Cluster::start() else { return };
    let store = cluster.store().await;
    claim(&store, "k").await;
    cluster.nodes[0].kill();
    for _ in 0..3 {
        let begun = Instant::now();
        let error = store.claim(&operation("new", b"body"), &bid()).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    cluster.nodes[0].restart();
    let begun = Instant::now();
    while let Err(error) = store.claim(&operation("new", b"body"), &bid()).await {
        assert!(begun.elapsed() < Duration::from_secs(30), "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_down_takes_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let store = cluster.store().await;
    claim(&store, "k").await;
    // A slot that nobody holds brings the whole cluster down.
    cmd("CLUSTER").arg("DELSLOTS").arg(0).exec(&mut cluster.beside(0)).unwrap();
    until(|| cluster.nodes[0].ask("CLUSTER INFO").contains("cluster_state:fail"));
    let error = store.claim(&operation("new", b"body"), &bid()).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Unavailable, Fate::NotApplied), "{error:?}");
    cmd("CLUSTER").arg("ADDSLOTS").arg(0).exec(&mut cluster.beside(0)).unwrap();
    until(|| cluster.nodes[0].ask("CLUSTER INFO").contains("cluster_state:ok"));
    claim(&store, "new").await;
}

#[tokio::test]
async fn a_listing_walks_over_all_nodes() {
    let Some(records) = Records::on_the_cluster() else { return };
    let store = records.store().await;
    let mut beside = records.beside();
    let mut slots = BTreeSet::new();
    let mut wanted = BTreeSet::new();
    for key in 0..60 {
        let lease = claim(&store, &key.to_string()).await;
        let slot: u16 = beside.ask(&format!("CLUSTER KEYSLOT {}", records.key(&lease.address)));
        slots.insert(slot / (SLOTS / 3 + 1));
        wanted.insert(lease.address);
    }
    assert_eq!(slots.len(), 3, "the keys are on one node");
    let mut seen = BTreeSet::new();
    let mut after = None;
    loop {
        let page = store.list(Select::All, after.as_ref(), 7).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        seen.extend(page.into_iter().map(|(address, _)| address));
    }
    assert_eq!(seen, wanted);
}
