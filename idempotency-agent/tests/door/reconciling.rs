//! Effects in doubt, and who finds out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotency_agent::{
    InDoubt, Outcome, Reconciled,
    json::Raw,
    ledger::{Resolution, Status},
};

use crate::scene::{Provider, builder, entry, key, ledger, original, scope};

type Found = Result<Reconciled, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::test]
async fn what_turns_out_to_have_happened_is_answered() {
    let provider = Provider::default();
    let find = |question: InDoubt| async move {
        assert!(question.provider_key.as_str().starts_with("ro_"));
        Found::Ok(Reconciled::Committed(Some(Raw::of(&41).unwrap())))
    };
    let ledger = builder().reconciler(find).build().unwrap();
    assert!(!ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx)).await.unwrap().is_done());
    let again = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(again, Outcome::Replayed(41)));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn what_turns_out_not_to_have_happened_is_attempted_again() {
    let provider = Provider::default();
    let ledger = builder().reconciler(|_| async { Found::Ok(Reconciled::NotApplied) }).build().unwrap();
    assert!(!ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx)).await.unwrap().is_done());
    let again = ledger.effect("conversation", "mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(again, Outcome::Executed { value: 2, .. }));
}

#[tokio::test]
async fn who_cannot_find_out_changes_nothing() {
    let provider = Provider::default();
    let ledger = builder().reconciler(|_| async { Found::Err("no line".into()) }).build().unwrap();
    let ask = || ledger.effect("conversation", "mail");
    assert!(!ask().execute(|fx| provider.lost(fx)).await.unwrap().is_done());
    let again = ask().reconciler(|_| async { Found::Ok(Reconciled::Unknown) }).execute(|fx| provider.ok(fx));
    assert!(matches!(again.await.unwrap(), Outcome::Ambiguous { .. }));
    assert!(matches!(ask().execute(|fx| provider.ok(fx)).await.unwrap(), Outcome::Ambiguous { .. }));
    assert_eq!((provider.count(), entry(&ledger, "mail").await.0), (1, Status::Ambiguous));
    // Who could not find out keeps nobody from finding out.
    let finds = ask().reconciler(|_| async { Found::Ok(Reconciled::NotApplied) });
    assert!(finds.execute(|fx| provider.ok(fx)).await.unwrap().is_done());
}

/// How many of ten callers at once ask the reconciler.
async fn finders(is_mended: bool) -> u32 {
    let (asked, provider) = (Arc::new(AtomicU32::new(0)), Provider::default());
    let counted = Arc::clone(&asked);
    let find = move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Found::Ok(Reconciled::Committed(None))
        }
    };
    let builder = if is_mended { builder() } else { original() };
    let ledger = builder.reconciler(find).build().unwrap();
    assert!(!ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx)).await.unwrap().is_done());
    let asking: Vec<_> = (0..10)
        .map(|_| {
            let (ask, provider) = (ledger.effect("conversation", "mail"), provider.clone());
            tokio::spawn(ask.execute(move |fx| async move { provider.ok(fx).await.map(Some) }))
        })
        .collect();
    for one in asking {
        assert!(!matches!(one.await.unwrap().unwrap(), Outcome::Executed { .. }));
    }
    assert_eq!(provider.count(), 1);
    asked.load(Ordering::SeqCst)
}

/// Fault 12.
#[tokio::test(start_paused = true)]
async fn one_caller_finds_out_and_in_the_original_all_do() {
    assert_eq!((finders(true).await, finders(false).await), (1, 10));
}

#[tokio::test]
async fn a_person_may_say_how_it_turned_out() {
    let (ledger, provider) = (ledger(), Provider::default());
    assert!(!ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx)).await.unwrap().is_done());
    let (_, doubt) = entry(&ledger, "mail").await;
    let (scope, key) = (scope(), key("mail"));
    for (attempt_id, applies) in [("another", false), (&doubt.attempt_id, true), (&doubt.attempt_id, false)] {
        let resolved =
            ledger.resolve(&scope, &key, Resolution::Committed, None, Some(attempt_id)).await.unwrap();
        assert_eq!(resolved.is_some(), applies);
    }
    let again =
        ledger.effect("conversation", "mail").execute(|fx| async move { provider.ok(fx).await.map(Some) });
    assert!(matches!(again.await.unwrap(), Outcome::Replayed(None)));
}
