//! Statements stay out of logs: they run on every request and say nothing an operator can act on. Secrets stay out of
//! everything.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    fmt::{self, Write as _},
    sync::Mutex,
    time::Duration,
};

use idempotency_core::{Media, Outcome, Settled, Store};
use idempotency_store_mysql::MySqlStore;
use scene::{DAY, Database, bid, builder, claim, keep, operation};
use sqlx::{Connection, MySqlConnection};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Whatever was logged, a line an event.
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
        let mut line = Line(format!("{}:", event.metadata().target()));
        event.record(&mut line);
        HEARD.lock().unwrap().push_str(&(line.0 + "\n"));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn no_statement_is_logged_at_any_level_and_no_secret_is_told() {
    let Some(database) = Database::reach() else { return };
    tracing::subscriber::set_global_default(Ears).unwrap();
    for way in [builder(), builder().without_returning()] {
        let store = way.table(database.table()).connect(database.url()).await.unwrap();
        let lease = claim(&store, "very-secret-key").await;
        let answer = Outcome::whole(Media(1), "very-secret-outcome");
        assert_eq!(store.complete(&lease, &answer, keep(DAY)).await.unwrap(), Settled::Applied);
        let _ = store.claim(&operation("very-secret-key", b"very-secret-body"), &bid()).await.unwrap();
        store.close().await;
        let failed = store.complete(&lease, &answer, keep(DAY)).await.unwrap_err();
        let shown = format!("{store:?} {failed:?} {lease:?}");
        let heard = HEARD.lock().unwrap().clone();
        assert!(!heard.contains("sqlx::query"), "{heard}");
        for secret in ["very-secret", &hex(b"very-secret"), &hex(lease.holder.as_bytes())] {
            assert!(!heard.contains(secret) && !shown.contains(secret), "{secret} in {heard} {shown}");
        }
    }

    let wrong = "mysql://idempotency_nobody:very-secret-password@127.0.0.1:1/shop";
    let hasty = MySqlStore::builder().patience(Duration::from_millis(100));
    let shown = format!("{:?}", hasty.connect(wrong).await.unwrap_err());
    assert!(!shown.contains("very-secret") && !HEARD.lock().unwrap().contains("very-secret"), "{shown}");

    let mut talkative = MySqlConnection::connect(database.url()).await.unwrap();
    sqlx::query("SELECT 'very-secret'").execute(&mut talkative).await.unwrap();
    let heard = HEARD.lock().unwrap();
    assert!(
        heard.contains("sqlx::query") && heard.contains("very-secret"),
        "these ears hear nothing: {heard}"
    );
}
