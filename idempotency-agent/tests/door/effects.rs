//! Effects outside of runs.

use std::time::Duration;

use idempotency_agent::{
    Applied, EffectError, Event, EventKind, LedgerError, Outcome, Policy, ProviderKeys, Refusal,
    ledger::{Number, Status},
};
use tokio::sync::{Barrier, oneshot};

use crate::scene::{Ears, Provider, builder, entry, key, ledger, original, policy, scope};

#[tokio::test]
async fn an_effect_happens_once_and_its_result_is_answered() {
    let (ears, provider) = (Ears::default(), Provider::default());
    let ledger = builder().observer(ears.listen()).build().unwrap();
    let ask = || ledger.effect("conversation", "refund").identity("order 1").execute(|fx| provider.ok(fx));
    assert!(matches!(ask().await.unwrap(), Outcome::Executed { value: 1, late: false }));
    assert!(matches!(ask().await.unwrap(), Outcome::Replayed(1)));
    let other = ledger.effect("conversation", "refund").identity("order 2").execute(|fx| provider.ok(fx));
    assert!(matches!(other.await.unwrap(), Outcome::Executed { value: 2, .. }));
    assert_eq!(provider.count(), 2);
    let [claimed, committed] =
        [EventKind::Claimed { attempt: 1, run_id: None }, EventKind::Committed { attempt: 1, run_id: None }];
    assert_eq!(ears.heard(), [claimed.clone(), committed.clone(), EventKind::Replayed, claimed, committed]);
}

#[tokio::test]
async fn of_fifty_at_once_one_attempts_and_who_waits_gets_its_result() {
    let (ledger, provider) = (ledger(), Provider::default());
    let (open, opened) = oneshot::channel::<()>();
    let running = tokio::spawn({
        let (ask, provider) = (ledger.effect("conversation", "refund"), provider.clone());
        ask.execute(move |fx| async move {
            opened.await.unwrap();
            provider.ok(fx).await
        })
    });
    while ledger.check(&scope(), &key("refund")).await.unwrap().entry.is_none() {
        tokio::task::yield_now().await;
    }
    let now = ledger.effect("conversation", "refund").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(now, Outcome::InFlight(_)));
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let (ask, provider) =
                (ledger.effect("conversation", "refund").wait(Duration::from_secs(5)), provider.clone());
            tokio::spawn(ask.execute(move |fx| async move { provider.ok(fx).await }))
        })
        .collect();
    open.send(()).unwrap();
    assert!(running.await.unwrap().unwrap().is_done());
    for one in waiting {
        assert!(matches!(one.await.unwrap().unwrap(), Outcome::Replayed(1)));
    }
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn an_error_is_no_proof_that_nothing_happened() {
    let (ears, provider) = (Ears::default(), Provider::default());
    let ledger = builder().observer(ears.listen()).build().unwrap();
    let ask = || ledger.effect("conversation", "mail").execute(|fx| provider.lost(fx));
    assert!(matches!(ask().await.unwrap(), Outcome::Ambiguous { error: Some(_), .. }));
    assert!(matches!(ask().await.unwrap(), Outcome::Ambiguous { error: None, .. }));
    assert_eq!(provider.count(), 1);
    let (status, entry) = entry(&ledger, "mail").await;
    assert_eq!((status, entry.error.as_deref()), (Status::Ambiguous, Some("str: timed out")));
    assert_eq!(
        ears.heard()[1..],
        [
            EventKind::Ambiguous { error: Some("str: timed out".to_owned()) },
            EventKind::Ambiguous { error: None },
        ]
    );
}

#[tokio::test]
async fn what_did_not_happen_is_attempted_again_until_it_may_not() {
    let (ledger, provider) = (ledger(), Provider::default());
    let ask = || ledger.effect("conversation", "mail").execute(|fx| provider.refused(fx));
    for retryable_ in [true, true, false] {
        let outcome = ask().await.unwrap();
        assert!(
            matches!(outcome, Outcome::Failed { retryable, .. } if retryable == retryable_),
            "{outcome:?}"
        );
    }
    let outcome = ask().await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Refused(Refusal::Exhausted(entry)) if entry.attempt == Number::Whole(3))
    );
}

#[tokio::test]
async fn a_classifier_knows_which_errors_came_before_the_effect() {
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Answer(u16);
    let knows = |error: &(dyn std::error::Error + 'static)| match error.downcast_ref::<Answer>() {
        Some(Answer(400..=499)) => Applied::No,
        Some(Answer(0)) => panic!("a classifier that fails"),
        _ => Applied::Unknown,
    };
    let ledger = builder().classifier(knows).build().unwrap();
    for (intent, status, stands) in
        [("a", 422, Status::Failed), ("b", 503, Status::Ambiguous), ("c", 0, Status::Ambiguous)]
    {
        let outcome =
            ledger.effect("conversation", intent).execute(|_| async move { Err::<u32, _>(Answer(status)) });
        assert!(!outcome.await.unwrap().is_done());
        assert_eq!(entry(&ledger, intent).await.0, stands, "{status}");
    }
    // The error's own mark, and the call's own classifier, come first.
    let own =
        ledger.effect("conversation", "d").classifier(|_: &(dyn std::error::Error + 'static)| Applied::No);
    assert!(matches!(
        own.execute(|_| async { Err::<u32, _>(Answer(503)) }).await.unwrap(),
        Outcome::Failed { .. }
    ));
    let marked = ledger
        .effect("conversation", "e")
        .execute(|_| async { Err::<u32, _>(EffectError::unknown(Answer(422))) });
    assert!(matches!(marked.await.unwrap(), Outcome::Ambiguous { .. }));
}

#[tokio::test]
async fn an_effect_is_told_what_it_needs() {
    let ledger = ledger();
    let told = ledger.effect("conversation", "refund").identity(&7).execute(|fx| async move {
        let same = fx.idempotency_key() == &fx.key().provider_key(fx.scope());
        Ok::<_, EffectError>((fx.attempt(), fx.fencing_token(), same, fx.intent().to_owned()))
    });
    assert_eq!(told.await.unwrap().into_value().unwrap(), (1, None, true, "refund".to_owned()));
}

#[tokio::test]
async fn a_provider_that_remembers_failures_is_given_a_key_for_each_attempt() {
    for (keys, differ) in [(ProviderKeys::PerEffect, false), (ProviderKeys::PerAttempt, true)] {
        let ledger = builder().policy(policy().provider_keys(keys)).build().unwrap();
        let mut seen = Vec::new();
        for _ in 0..2 {
            let ask = ledger.effect("conversation", "refund").execute(|fx| {
                seen.push(fx.idempotency_key().clone());
                async { Err::<(), _>(EffectError::not_applied("no")) }
            });
            assert!(!ask.await.unwrap().is_done());
        }
        assert_eq!(seen[0] != seen[1], differ);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_time_is_over_is_dropped_and_in_doubt() {
    let ledger = ledger();
    let endless =
        ledger.effect("conversation", "mail").execute(|_| std::future::pending::<Result<(), EffectError>>());
    let outcome = endless.await.unwrap();
    assert!(matches!(outcome, Outcome::Ambiguous { error: Some(_), .. }), "{outcome:?}");
    assert_eq!(entry(&ledger, "mail").await.0, Status::Ambiguous);
}

#[tokio::test]
async fn a_result_that_no_longer_reads_is_no_reason_to_do_it_again() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = ledger
        .effect("conversation", "refund")
        .execute(|_| async { Ok::<_, EffectError>("text".to_owned()) });
    assert!(first.await.unwrap().is_done());
    let second = ledger.effect("conversation", "refund").execute(|fx| provider.ok(fx)).await;
    assert!(matches!(second, Err(LedgerError::StoredResult(_))));
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn a_result_that_json_cannot_hold_is_answered_once_and_null_from_then_on() {
    let ears = Ears::default();
    let ledger = builder().observer(ears.listen()).build().unwrap();
    let odd = || std::collections::HashMap::from([(vec![1u8], 1u8)]);
    let first =
        ledger.effect("conversation", "refund").execute(|_| async { Ok::<_, EffectError>(Some(odd())) });
    assert_eq!(first.await.unwrap().into_value(), Some(Some(odd())));
    let second =
        ledger.effect("conversation", "refund").execute(|_| async { Ok::<_, EffectError>(Some(odd())) });
    assert!(matches!(second.await.unwrap(), Outcome::Replayed(None)));
    assert!(ears.heard().contains(&EventKind::UnserializableResult));
}

#[tokio::test]
async fn a_result_longer_than_what_is_kept_is_answered_once_and_its_effect_never_done_again() {
    let ears = Ears::default();
    let policy = policy().max_result_bytes(1_000);
    let ledger = builder().policy(policy).observer(ears.listen()).build().unwrap();
    let ask = |length: usize| {
        let effect = ledger.effect("conversation", "export").identity(&length);
        effect.execute(move |_| async move { Ok::<_, EffectError>("x".repeat(length - 2)) })
    };
    assert_eq!(ask(1_000).await.unwrap().name(), "executed");
    assert_eq!(ask(1_000).await.unwrap().name(), "replayed");
    ears.heard();
    let first = ask(1_001).await.unwrap();
    assert!(matches!(&first, Outcome::Executed { value, late: false } if value.len() == 999));
    assert!(ears.heard().contains(&EventKind::ResultNotKept { bytes: 1_001 }));
    for _ in 0..2 {
        assert!(matches!(ask(1_001).await, Err(LedgerError::ResultNotKept { bytes: 1_001 })));
    }
    assert_eq!(ears.heard(), [EventKind::Replayed, EventKind::Replayed]);
    let key = ledger.effect("conversation", "export").identity(&1_001).key().unwrap();
    assert!(ledger.check(&scope(), &key).await.unwrap().is_done());
}

#[tokio::test]
async fn names_that_are_none_and_identities_that_identify_nothing_are_refused_before_anything_is_written() {
    let (ledger, provider) =
        (builder().policy(policy().portable_identities_only()).build().unwrap(), Provider::default());
    for ask in [
        ledger.effect("", "refund"),
        ledger.effect("conversation", "refund\n"),
        ledger.effect("conversation", "refund").identity(&f64::NAN),
        ledger.effect("conversation", "refund").identity(&1e300),
        ledger.once("x".repeat(513)),
    ] {
        assert!(ask.execute(|fx| provider.ok(fx)).await.is_err());
    }
    assert_eq!((provider.count(), ledger.history(&scope()).await.unwrap().len()), (0, 0));
    assert!(builder().policy(Policy::new().max_attempts(0)).build().is_err());
    assert!(builder().policy(Policy::new().pending(Duration::ZERO)).build().is_err());
}

#[tokio::test]
async fn an_observer_that_panics_is_ignored() {
    let (ledger, provider) = (
        builder().observer(|_: &Event| panic!("an observer that fails")).build().unwrap(),
        Provider::default(),
    );
    let ask = ledger.effect("conversation", "refund").execute(|fx| provider.ok(fx));
    assert!(matches!(ask.await.unwrap(), Outcome::Executed { value: 1, late: false }));
}

#[tokio::test]
async fn a_text_of_the_callers_own_is_a_key() {
    let (ledger, provider) = (ledger(), Provider::default());
    let ask = || ledger.once("order 1: refund").execute(|fx| provider.ok(fx));
    assert!(matches!(ask().await.unwrap(), Outcome::Executed { .. }));
    assert!(matches!(ask().await.unwrap(), Outcome::Replayed(1)));
    // An intent in a scope of that name is something else.
    assert!(ledger.once("refund").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    let other = ledger.effect("refund", "refund").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(other, Outcome::Refused(Refusal::KeyTaken(_))));
}

#[tokio::test]
async fn fifty_on_one_key_at_once_come_to_one_effect() {
    let (ledger, provider) = (ledger(), Provider::default());
    let start = std::sync::Arc::new(Barrier::new(50));
    let asking: Vec<_> = (0..50)
        .map(|_| {
            let (ask, provider, start) =
                (ledger.effect("conversation", "refund"), provider.clone(), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                ask.execute(move |fx| async move { provider.ok(fx).await }).await.unwrap().name()
            })
        })
        .collect();
    let mut executed = 0;
    for one in asking {
        executed += u32::from(one.await.unwrap() == "executed");
    }
    assert_eq!((executed, provider.count()), (1, 1));
}

#[tokio::test]
async fn a_payload_binds_its_key_unless_nothing_happened() {
    let (ledger, provider) = (ledger(), Provider::default());
    let ask =
        |order: &str, cents: u32| ledger.effect("conversation", "refund").identity(order).payload(&cents);
    assert!(ask("order 1", 500).execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    let other = ask("order 1", 700).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(
        matches!(&other, Outcome::Refused(Refusal::PayloadChanged(entry)) if entry.attempt == Number::ONE)
    );
    assert!(matches!(ask("order 1", 500).execute(|fx| provider.ok(fx)).await.unwrap(), Outcome::Replayed(1)));
    // Who compares nothing is told what the key came to.
    let blind = ledger.effect("conversation", "refund").identity("order 1").execute(|fx| provider.ok(fx));
    assert!(matches!(blind.await.unwrap(), Outcome::Replayed(1)));

    let lost = ask("order 2", 500).execute(|_| async { Err::<u32, _>(EffectError::unknown("timed out")) });
    assert!(matches!(lost.await.unwrap(), Outcome::Ambiguous { .. }));
    let other = ask("order 2", 700).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(other, Outcome::Refused(Refusal::PayloadChanged(_))));

    let refused =
        ask("order 3", 500).execute(|_| async { Err::<u32, _>(EffectError::not_applied("no such order")) });
    assert!(matches!(refused.await.unwrap(), Outcome::Failed { retryable: true, .. }));
    let mended = ask("order 3", 700).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(mended, Outcome::Executed { value: 2, .. }));
    assert_eq!(provider.count(), 2);

    // The original knows of no payload.
    let (original, provider) = (original().build().unwrap(), Provider::default());
    for (cents, expected) in [(500, "executed"), (700, "replayed")] {
        let ask = original.effect("conversation", "refund").payload(&cents);
        assert_eq!(ask.execute(|fx| provider.ok(fx)).await.unwrap().name(), expected);
    }
}
