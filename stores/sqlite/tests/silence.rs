//! Statements stay out of logs: they run on every request and say nothing an operator can act on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::sync::atomic::{AtomicUsize, Ordering};

use idempotency_store_sqlite::SqliteStore;
use scene::claim;
use sqlx::{Connection, SqliteConnection};
use tracing::{Event, Metadata, Subscriber, span};

static STATEMENTS: AtomicUsize = AtomicUsize::new(0);

/// Listens to everything and counts the statements it hears of.
struct Ears;

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
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn no_statement_is_logged_at_any_level() {
    tracing::subscriber::set_global_default(Ears).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("shop.db")).await.unwrap();
    claim(&store, "k").await;
    assert_eq!(STATEMENTS.load(Ordering::SeqCst), 0);

    let mut talkative = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    sqlx::query("SELECT 1").execute(&mut talkative).await.unwrap();
    assert_ne!(STATEMENTS.load(Ordering::SeqCst), 0, "these ears hear no statement at all");
}
