//! What the tests of this crate share: records of a test's own on a server, operations and bids.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Door, Fingerprint, Holder, Keep, Key, Lease, Media, OnLapse, Operation, Outcome,
    Part, Scope, Store,
};
use idempotency_services::{Persistence, RedisServer, Server};
use idempotency_store_redis::{RedisStore, RedisStoreBuilder};
use redis::{Cmd, Connection, ConnectionLike, FromRedisValue, Value, cluster::ClusterConnection, cmd};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Records of a test's own: their keys begin like no other's, and are gone with this.
pub(crate) struct Records {
    url: String,
    prefix: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Cluster,
}

impl Records {
    /// On the server of `REDIS_URL`, if there is one.
    pub(crate) fn on_the_server() -> Option<Self> {
        Server::Redis.url().map(|url| Self::new(url, Kind::Single))
    }

    /// On the cluster of `REDIS_CLUSTER_URL`, if there is one.
    pub(crate) fn on_the_cluster() -> Option<Self> {
        Server::RedisCluster.url().map(|url| Self::new(url, Kind::Cluster))
    }

    /// On a server of the test's own.
    pub(crate) fn on(server: &RedisServer) -> Self {
        Self::new(server.url(), Kind::Single)
    }

    fn new(url: String, kind: Kind) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self { url, prefix: format!("idempotency-test-{}-{number}:", std::process::id()), kind }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A store on these records.
    pub(crate) async fn store(&self) -> RedisStore {
        self.open(builder()).await
    }

    pub(crate) async fn open(&self, builder: RedisStoreBuilder) -> RedisStore {
        self.open_at(builder, &self.url).await
    }

    /// A store on these records that reaches their server at another place.
    pub(crate) async fn open_at(&self, builder: RedisStoreBuilder, url: &str) -> RedisStore {
        let builder = builder.prefix(&self.prefix);
        match self.kind {
            Kind::Single => builder.connect(url).await.unwrap(),
            Kind::Cluster => builder.connect_cluster([url]).await.unwrap(),
        }
    }

    /// The key of a record.
    pub(crate) fn key(&self, address: &Address) -> String {
        let digits: String = address.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.prefix.clone() + &digits
    }

    /// A connection of the application's own.
    pub(crate) fn beside(&self) -> Beside {
        match self.kind {
            Kind::Single => {
                let client = redis::Client::open(self.url.as_str()).unwrap();
                Beside::Single(Box::new(client.get_connection().unwrap()))
            }
            Kind::Cluster => {
                let client = redis::cluster::ClusterClient::new([self.url.as_str()]).unwrap();
                Beside::Cluster(Box::new(client.get_connection().unwrap()))
            }
        }
    }
}

/// A connection beside the store's.
pub(crate) enum Beside {
    Single(Box<Connection>),
    Cluster(Box<ClusterConnection>),
}

impl Beside {
    /// Sends the words of `command`, such as `PTTL a`.
    pub(crate) fn ask<T: FromRedisValue>(&mut self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut command = cmd(words.next().unwrap());
        words.for_each(|word| {
            command.arg(word);
        });
        self.send(&command)
    }

    pub(crate) fn send<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        match self {
            Self::Single(connection) => command.query(&mut **connection).unwrap(),
            Self::Cluster(connection) => command.query(&mut **connection).unwrap(),
        }
    }

    /// What stands at a key: the text, and in how many milliseconds it goes.
    pub(crate) fn dump(&mut self, key: &str) -> (Option<Vec<u8>>, i64) {
        (self.ask(&format!("GET {key}")), self.ask(&format!("PEXPIRETIME {key}")))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // what they were is of interest then
        }
        // A server of the test's own may be gone by now.
        let Ok(client) = redis::Client::open(self.url.as_str()) else { return };
        let Ok(mut connection) = client.get_connection() else { return };
        let nodes = match self.kind {
            Kind::Single => vec![connection],
            Kind::Cluster => {
                let slots: Vec<(u64, u64, (String, u16))> = slots(&mut connection);
                let urls = slots.into_iter().map(|(_, _, (host, port))| format!("redis://{host}:{port}/"));
                urls.map(|url| redis::Client::open(url).unwrap().get_connection().unwrap()).collect()
            }
        };
        for mut node in nodes {
            let mut keys = cmd("KEYS");
            let keys: Vec<String> = keys.arg(format!("{}*", self.prefix)).query(&mut node).unwrap();
            for key in keys {
                cmd("DEL").arg(key).exec(&mut node).unwrap();
            }
        }
    }
}

/// The ranges of slots of a cluster, and where the node of each is.
fn slots(node: &mut impl ConnectionLike) -> Vec<(u64, u64, (String, u16))> {
    let Value::Array(ranges) = cmd("CLUSTER").arg("SLOTS").query(node).unwrap() else { panic!("no slots") };
    let range = |range| {
        let Value::Array(range) = range else { panic!("no range of slots") };
        let [from, to, node, ..] = &range[..] else { panic!("a range without a node") };
        let Value::Array(node) = node else { panic!("no node") };
        let number = |value: &Value| redis::from_redis_value(value.clone()).unwrap();
        let port = u16::try_from(number(&node[1])).unwrap();
        (number(from), number(to), (redis::from_redis_value(node[0].clone()).unwrap(), port))
    };
    ranges.into_iter().map(range).collect()
}

/// With patience for a busy machine.
pub(crate) fn builder() -> RedisStoreBuilder {
    RedisStore::builder().patience(Duration::from_secs(20))
}

/// A server of a test's own that forgets everything when it ends; `settings` as on its command line.
pub(crate) fn server(settings: &[&str]) -> Option<RedisServer> {
    RedisServer::start(Persistence::None, settings)
}

pub(crate) fn operation(key: &str, body: &[u8]) -> Operation {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new(key).unwrap());
    Operation::new(address, Fingerprint::builder().part(Part::Body, body).build())
}

pub(crate) fn bid() -> Bid {
    Bid { holder: Holder::draw(), lease: DAY, retention: DAY, on_lapse: OnLapse::TakeOver }
}

pub(crate) fn keep(replay: Duration) -> Keep {
    Keep { replay, then_reject: Duration::ZERO }
}

pub(crate) fn outcome() -> Outcome {
    Outcome::whole(Media(1), "done")
}

pub(crate) fn granted(claim: Claim<Lease>) -> Lease {
    match claim {
        Claim::Granted(lease) => lease,
        refused => panic!("not granted: {refused:?}"),
    }
}

pub(crate) async fn claim(store: &RedisStore, key: &str) -> Lease {
    granted(store.claim(&operation(key, b"body"), &bid()).await.unwrap())
}
