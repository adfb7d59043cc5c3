//! A store whose calls fail, before or after they were applied.

use std::sync::Arc;

use idempotency_agent::{
    EventKind, Ledger, LedgerError, Outcome,
    ledger::{Number, Status},
};
use idempotency_core::{Fate, LedgerLayout};

use crate::scene::{Ears, Failing, Provider, RuntimeClock, entry, key, memory, original, policy, scope};

const LOST: Option<Fate> = Some(Fate::Unknown);
const DOWN: Option<Fate> = Some(Fate::NotApplied);

fn failing() -> (Arc<Failing>, Ledger<Arc<Failing>>, Ears) {
    let (store, ears) = (Arc::new(Failing::new(memory())), Ears::default());
    let ledger =
        Ledger::builder(Arc::clone(&store)).policy(policy()).observer(ears.listen()).build().unwrap();
    (store, ledger, ears)
}

/// The original's ledger on such a store.
fn strict() -> (Arc<Failing>, Ledger<Arc<Failing>>, Ears) {
    let (store, ears) = (Arc::new(Failing::new(memory().with_layout(LedgerLayout::Whole))), Ears::default());
    let policy = policy().compat(idempotency_agent::Compat::Strict);
    let builder = Ledger::builder(Arc::clone(&store)).policy(policy).clock(RuntimeClock::new());
    let ledger = builder.observer(ears.listen()).build().unwrap();
    (store, ledger, ears)
}

/// Fault 4, of a claim.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_is_lost_is_adopted() {
    let provider = Provider::default();
    let (store, ledger, _) = failing();
    store.fail(&[LOST]);
    let asked = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(asked, Outcome::Executed { value: 1, late: false }));
    let (store, ledger, _) = strict();
    store.fail(&[LOST]);
    assert!(ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.is_err());
    assert_eq!(entry(&ledger, "mail").await.0, Status::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_never_answered_is_given_back() {
    let (provider, (store, ledger, _)) = (Provider::default(), failing());
    store.fail(&[LOST, LOST, LOST]);
    let asked = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await;
    assert!(matches!(asked, Err(LedgerError::Store(_))));
    while ledger.check(&scope(), &key("mail")).await.unwrap().status == Some(Status::Pending) {
        tokio::task::yield_now().await;
    }
    assert!(ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    assert_eq!(provider.count(), 1);
}

/// Fault 4, of a settling.
#[tokio::test(start_paused = true)]
async fn a_settling_whose_answer_is_lost_is_not_late() {
    let provider = Provider::default();
    let (store, ledger, ears) = failing();
    store.fail(&[None, LOST]);
    let asked = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(asked, Outcome::Executed { late: false, .. }));
    assert!(!ears.heard().contains(&EventKind::LateSettle { attempt: 1 }));
    let (store, ledger, ears) = strict();
    store.fail(&[None, LOST]);
    let asked = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(asked, Outcome::Executed { late: true, .. }));
    assert!(ears.heard().contains(&EventKind::LateSettle { attempt: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_back_is_told_and_one_that_does_not_leaves_it_in_flight() {
    let (provider, (store, ledger, ears)) = (Provider::default(), failing());
    store.fail(&[None, DOWN, DOWN, DOWN]);
    let asked = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(asked, Outcome::Executed { late: false, .. }));
    store.fail(&[None, DOWN, DOWN, DOWN, DOWN]);
    ears.heard();
    let asked = ledger.effect("conversation", "other").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(asked, Outcome::Executed { late: true, .. }));
    assert_eq!(ears.heard()[1..], [EventKind::LateSettle { attempt: 1 }]);
    assert_eq!(entry(&ledger, "other").await.0, Status::Pending);
}

/// Fault 8, first part.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_not_recorded_is_in_flight_and_its_event_is_sent_again() {
    for is_mended in [true, false] {
        let (provider, (store, ledger, ears)) =
            (Provider::default(), if is_mended { failing() } else { strict() });
        store.fail(&[None, DOWN, DOWN, DOWN, DOWN]);
        let asked = ledger.webhook("conversation", "evt_1").execute(|fx| provider.refused(fx)).await.unwrap();
        match is_mended {
            true => assert!(matches!(&asked, Outcome::InFlight(entry) if entry.attempt == Number::ONE)),
            false => assert!(matches!(asked, Outcome::Failed { retryable: true, .. })),
        }
        assert!(ears.heard().iter().any(|kind| matches!(kind, EventKind::Failed { .. })));
        assert_eq!(asked.webhook_answer().status, if is_mended { 503 } else { 500 });
        let again = ledger.webhook("conversation", "evt_1").execute(|fx| provider.ok(fx)).await.unwrap();
        assert!(matches!(again, Outcome::InFlight(_)));
    }
}

/// Fault 8, second part.
#[tokio::test(start_paused = true)]
async fn what_did_not_count_is_not_called_committed() {
    for is_mended in [true, false] {
        let (provider, (_, ledger, ears)) =
            (Provider::default(), if is_mended { failing() } else { strict() });
        let asked = ledger.effect("conversation", "mail").execute(|fx| {
            let (ledger, provider) = (ledger.clone(), provider.clone());
            async move {
                // Somebody loses patience and says that it did not happen, and it is attempted once more.
                let attempt = entry(&ledger, "mail").await.1.attempt_id;
                overwrite(&ledger, &attempt).await;
                provider.ok(fx).await
            }
        });
        assert!(matches!(asked.await.unwrap(), Outcome::Executed { late: true, .. }));
        let says_committed = ears.heard().contains(&EventKind::Committed { attempt: 1, run_id: None });
        assert_eq!(says_committed, !is_mended);
    }
}

/// Puts another attempt in the place of `attempt_id`.
async fn overwrite(ledger: &Ledger<Arc<Failing>>, attempt_id: &str) {
    use idempotency_core::{LedgerStore, Motion, Revision};
    ledger
        .store()
        .transact("conversation", &[], |folio, _| {
            let head = folio.head.clone().unwrap().replace(attempt_id, "another");
            Motion::Write(Revision { head, sheets: [].into(), settled: false }, ())
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn the_original_is_a_choice() {
    let (provider, ledger) = (Provider::default(), original().build().unwrap());
    assert!(ledger.effect("conversation", "mail\n").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
}
