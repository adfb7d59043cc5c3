//! Outcomes stay out of logs, at every level: the SDK traces whole requests and answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{
    fmt::{self, Debug},
    sync::{Mutex, PoisonError},
};

use idempotency_core::{Claim, Inspect, Media, Outcome, Select, Settled, Store};
use scene::{DAY, Place, bid, claim, keep, operation};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Three bytes to each letter pair, so that its base64 stands in any longer one's.
const SECRET: &str = "account number 4711-0815 of Mallory";
const SECRET_IN_BASE64: &str = "YWNjb3VudCBudW1iZXIgNDcxMS0wODE1IG9mIE1hbGxvcn";
const SECRET_IN_NUMBERS: &str = "97, 99, 99, 111, 117, 110, 116, 32, 110, 117, 109, 98, 101, 114";

static HEARD: Mutex<String> = Mutex::new(String::new());

/// Listens to everything and keeps what it heard.
struct Ears;

struct Note;

impl Visit for Note {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        use fmt::Write;
        let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(heard, "{value:?}").unwrap();
    }
}

impl Subscriber for Ears {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut Note);
        span::Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Note);
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Note);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn heard_secret() -> bool {
    let heard = HEARD.lock().unwrap();
    [SECRET, SECRET_IN_BASE64, SECRET_IN_NUMBERS].iter().any(|secret| heard.contains(secret))
}

#[tokio::test]
async fn no_outcome_is_logged_at_any_level() {
    let Some(place) = Place::find() else { return };
    tracing::subscriber::set_global_default(Ears).unwrap();
    let store = place.open().await;
    let lease = claim(&store, "k").await;
    let outcome = Outcome::whole(Media(1), SECRET);
    assert_eq!(store.complete(&lease, &outcome, keep(DAY)).await.unwrap(), Settled::Applied);
    let verdict = store.claim(&operation("k", b"body"), &bid()).await.unwrap();
    assert_eq!(verdict, Claim::Completed(outcome));
    store.look(&operation("k", b"body")).await.map(drop).unwrap();
    assert_eq!(store.list(Select::All, None, 10).await.unwrap().len(), 1);
    assert!(!heard_secret(), "{}", HEARD.lock().unwrap());

    // The application's own client is heard all the same.
    place.item(&lease.address).await.unwrap();
    assert!(heard_secret(), "these ears do not hear what the SDK says: {}", HEARD.lock().unwrap());
}
