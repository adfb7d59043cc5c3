//! Statements stay out of logs, and so does what they are about.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    fmt::{self, Write as _},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use idempotency_core::{Claim, Notify, Settled, Store};
use scene::{Database, bid, claim, keep, operation, outcome};
use tracing::{Event, Metadata, Subscriber, field::Field, span};

static STATEMENTS: AtomicUsize = AtomicUsize::new(0);
static HEARD: Mutex<String> = Mutex::new(String::new());

/// Listens to everything, writes it down, and counts the statements it hears of.
struct Ears;

struct Words<'w>(&'w mut String);

impl tracing::field::Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Ears {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() == "sqlx::query" {
            STATEMENTS.fetch_add(1, Ordering::SeqCst);
        }
        event.record(&mut Words(&mut HEARD.lock().unwrap()));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn no_statement_is_logged_at_any_level_and_no_key() {
    let Some(database) = Database::reach() else { return };
    tracing::subscriber::set_global_default(Ears).unwrap();
    let (store, table) = database.store().await;
    let lease = claim(&store, "order-of-alice").await;
    let op = operation("order-of-alice", b"body");
    // Whoever listens to nothing waits for ever, and who waits here is woken by the completion.
    let waiter = tokio::spawn({
        let (store, address) = (store.clone(), *op.address());
        async move { store.ended(&address).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(store.complete(&lease, &outcome(), keep(scene::DAY)).await.unwrap(), Settled::Applied);
    waiter.await.unwrap();
    assert_eq!(store.claim(&op, &bid()).await.unwrap(), Claim::Completed(outcome()));
    assert_eq!(STATEMENTS.load(Ordering::SeqCst), 0);

    let mut talkative = database.beside().await;
    database.run(&mut talkative, &table, "DROP TABLE {t}").await;
    assert_ne!(STATEMENTS.load(Ordering::SeqCst), 0, "these ears hear no statement at all");
    store.claim(&op, &bid()).await.unwrap_err();
    let heard = HEARD.lock().unwrap().clone();
    assert!(!heard.contains("alice") && !heard.contains("body"), "{heard}");
}
