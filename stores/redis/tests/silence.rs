//! What is logged and shown names no key, no body and no password.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    error::Error,
    fmt::{self, Write as _},
    sync::Mutex,
};

use idempotency_core::{Inspect, Media, Notify, Outcome, Release, Select, Store};
use idempotency_store_redis::RedisStore;
use scene::{DAY, Records, bid, builder, claim, keep, operation, server};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

static HEARD: Mutex<String> = Mutex::new(String::new());

/// Listens to everything.
struct Ears;

impl Subscriber for Ears {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words);
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Words;

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(HEARD.lock().unwrap(), "{field}={value:?}").unwrap();
    }
}

fn hear(said: &(impl fmt::Debug + ?Sized)) {
    writeln!(HEARD.lock().unwrap(), "{said:?}").unwrap();
}

fn hear_error(error: &dyn Error) {
    hear(error);
    let mut next = Some(error);
    while let Some(error) = next {
        writeln!(HEARD.lock().unwrap(), "{error}").unwrap();
        next = error.source();
    }
}

#[tokio::test]
async fn neither_keys_nor_bodies_nor_passwords_are_said() {
    tracing::subscriber::set_global_default(Ears).unwrap();
    let Some(mut server) = server(&["--maxmemory-policy", "allkeys-lru"]) else { return };
    let records = Records::on(&server);
    let mut beside = records.beside();
    beside.ask::<()>("ACL SETUSER clerk on >open-sesame ~* &* +@all");
    let url = records.url().replace("redis://", "redis://clerk:open-sesame@");
    let builder = builder().accept_eviction();
    hear(&builder);
    let store = records.open_at(builder, &url).await;
    hear(&store);

    let lease = claim(&store, "the-callers-key").await;
    let answer = Outcome::whole(Media(1), "the-answers-body");
    let _ = store.ended(&lease.address).await; // wakes when the subscription begins
    let _ = store.complete(&lease, &answer, keep(DAY)).await.unwrap();
    hear(&store.claim(&operation("the-callers-key", b"the-requests-body"), &bid()).await);
    hear(&store.list(Select::All, None, 10).await);

    // Errors in which a server quotes what it was sent.
    beside.ask::<()>("ACL SETUSER clerk -evalsha");
    hear_error(&store.release(&lease, Release::Unknown).await.unwrap_err());
    beside.ask::<()>("ACL SETUSER clerk +evalsha -set");
    let lost = claim_error(&store).await;
    hear_error(&lost);
    server.kill();
    hear_error(&claim_error(&store).await);
    hear_error(&RedisStore::connect(&url).await.unwrap_err());

    let heard = HEARD.lock().unwrap();
    assert!(heard.contains("allkeys-lru"), "these ears hear nothing: {heard}");
    for secret in ["the-callers-key", "the-answers-body", "the-requests-body", "open-sesame"] {
        assert!(!heard.contains(secret), "{secret}: {heard}");
    }
    for digest in [lease.address.as_bytes().as_slice(), lease.holder.as_bytes()] {
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!heard.contains(&digits), "{digits}: {heard}");
    }
}

async fn claim_error(store: &RedisStore) -> idempotency_core::StoreError {
    let op = operation("the-callers-key-2", b"the-requests-body");
    store.claim(&op, &bid()).await.unwrap_err()
}
