//! Callers that go away.

use std::{sync::Arc, time::Duration};

use idempotency_agent::{EffectContext, EffectError, Ledger, Outcome, ledger::Status};
use idempotency_core::Fate;
use tokio::{sync::oneshot, time::sleep};

use crate::scene::{Failing, Provider, entry, key, ledger, memory, original, policy, scope};

const DOWN: Option<Fate> = Some(Fate::NotApplied);

/// Waits until an effect is no longer pending.
async fn settled<S: idempotency_core::LedgerStore>(ledger: &Ledger<S>, intent: &str) -> Status {
    loop {
        match ledger.check(&scope(), &key(intent)).await.unwrap().status {
            None | Some(Status::Pending) => sleep(Duration::from_millis(1)).await,
            Some(status) => return status,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_while_the_effect_runs_leaves_it_in_doubt_at_once() {
    let ledger = ledger();
    let (begin, begun) = oneshot::channel();
    let call = ledger.effect("conversation", "mail").execute(|_| async move {
        begin.send(()).unwrap();
        std::future::pending::<Result<(), EffectError>>().await
    });
    tokio::select! {
        _ = call => panic!("it never ends"),
        begun = begun => begun.unwrap(),
    }
    let before = tokio::time::Instant::now();
    assert_eq!(settled(&ledger, "mail").await, Status::Ambiguous);
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(entry(&ledger, "mail").await.1.error.as_deref(), Some("Cancelled: while it ran"));
}

/// Fault 11: in the original nothing is recorded until the attempt's time is over.
#[tokio::test(start_paused = true)]
async fn in_the_original_it_is_in_flight_until_its_time_is_over() {
    let ledger = original().build().unwrap();
    let (begin, begun) = oneshot::channel();
    let call = ledger.effect("conversation", "mail").execute(|_| async move {
        begin.send(()).unwrap();
        std::future::pending::<Result<(), EffectError>>().await
    });
    tokio::select! {
        _ = call => panic!("it never ends"),
        begun = begun => begun.unwrap(),
    }
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(entry(&ledger, "mail").await.0, Status::Pending);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(entry(&ledger, "mail").await.0, Status::Ambiguous);
}

#[tokio::test]
async fn who_goes_away_before_the_point_of_no_return_leaves_it_to_be_attempted_again() {
    let (ledger, provider) = (ledger(), Provider::default());
    let ask = || ledger.effect("conversation", "mail").with_point_of_no_return();
    let (begin, begun) = oneshot::channel();
    let call = ask().execute(|_| async move {
        begin.send(()).unwrap();
        std::future::pending::<Result<u32, EffectError>>().await
    });
    tokio::select! {
        _ = call => panic!("it never ends"),
        begun = begun => begun.unwrap(),
    }
    assert_eq!(settled(&ledger, "mail").await, Status::Failed);
    let again = ask().execute(|fx| async move {
        fx.point_of_no_return().await?;
        fx.point_of_no_return().await?;
        Ok::<_, EffectError>(fx.attempt())
    });
    assert!(matches!(again.await.unwrap(), Outcome::Executed { value: 2, .. }));
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn after_the_point_of_no_return_it_is_in_doubt() {
    let ledger = ledger();
    let (begin, begun) = oneshot::channel();
    let call = ledger.effect("conversation", "mail").with_point_of_no_return().execute(|fx| async move {
        fx.point_of_no_return().await?;
        begin.send(()).unwrap();
        std::future::pending::<Result<u32, EffectError>>().await
    });
    tokio::select! {
        _ = call => panic!("it never ends"),
        begun = begun => begun.unwrap(),
    }
    assert_eq!(settled(&ledger, "mail").await, Status::Ambiguous);
}

#[tokio::test]
async fn an_error_before_the_point_of_no_return_means_that_nothing_happened() {
    let ledger = ledger();
    let ask = || ledger.effect("conversation", "mail").with_point_of_no_return();
    let early = ask().execute(|_| async { Err::<(), _>(std::io::Error::other("no address")) }).await.unwrap();
    assert!(matches!(early, Outcome::Failed { retryable: true, .. }));
    let late = ask().execute(|fx| async move {
        fx.point_of_no_return().await?;
        Err::<(), EffectError>(std::io::Error::other("timed out").into())
    });
    assert!(matches!(late.await.unwrap(), Outcome::Ambiguous { .. }));
    // Who marks no point of no return may not come to one.
    let none =
        ledger.effect("conversation", "other").execute(|fx| async move { fx.point_of_no_return().await });
    assert!(matches!(none.await.unwrap(), Outcome::Failed { .. }));
}

/// Two steps of one attempt mark its point of no return at once: what one of them passed, the other cannot undo.
#[tokio::test(start_paused = true)]
async fn a_mark_that_fails_takes_nothing_back_from_one_that_passed() {
    // The claim; then the two marks in either order.
    for fails in [[None, None, DOWN], [None, DOWN, None]] {
        let (store, provider) = (Arc::new(Failing::new(memory())), Provider::default());
        let ledger = Ledger::builder(Arc::clone(&store)).policy(policy()).build().unwrap();
        let step = |fx: EffectContext| {
            let provider = provider.clone();
            async move {
                fx.point_of_no_return().await?;
                Ok::<_, EffectError>(provider.send())
            }
        };
        store.fail(&fails);
        let asked = ledger.effect("conversation", "mail").with_point_of_no_return().execute(|fx| async {
            let (charged, mailed) = tokio::join!(step(fx.clone()), step(fx));
            charged.and(mailed)
        });
        assert!(matches!(asked.await.unwrap(), Outcome::Ambiguous { .. }));
        assert_eq!((provider.count(), entry(&ledger, "mail").await.0), (1, Status::Ambiguous));
    }
}

/// A part of the attempt that outlives it sends nothing once the attempt is recorded as not having happened.
#[tokio::test(start_paused = true)]
async fn who_comes_to_the_point_of_no_return_after_the_attempt_is_not_let_through() {
    let store = Arc::new(Failing::new(memory()));
    let ledger = Ledger::builder(Arc::clone(&store)).policy(policy()).build().unwrap();
    let (keep, kept) = oneshot::channel();
    let ask = ledger.effect("conversation", "mail").with_point_of_no_return();
    let failed = ask.execute(|fx| async move {
        assert!(keep.send(fx).is_ok());
        Err::<u32, _>(EffectError::unknown("the first step failed"))
    });
    // Nothing of the failure is recorded, so that the law would let the mark through.
    store.fail(&[None, DOWN, DOWN, DOWN, DOWN]);
    let _ = failed.await.unwrap();
    assert!(kept.await.unwrap().point_of_no_return().await.is_err());
    assert_eq!(entry(&ledger, "mail").await.0, Status::Pending);
}

#[tokio::test]
async fn a_detached_effect_goes_on_without_its_caller() {
    let (ledger, provider) = (ledger(), Provider::default());
    let (begin, begun) = oneshot::channel();
    let (finish, finished) = oneshot::channel::<()>();
    let call = ledger.effect("conversation", "mail").execute_detached({
        let provider = provider.clone();
        move |fx| async move {
            begin.send(()).unwrap();
            finished.await.unwrap();
            provider.ok(fx).await
        }
    });
    tokio::select! {
        _ = call => panic!("it is not finished"),
        begun = begun => begun.unwrap(),
    }
    finish.send(()).unwrap();
    assert_eq!((settled(&ledger, "mail").await, provider.count()), (Status::Committed, 1));
}

#[tokio::test]
async fn a_panic_leaves_it_in_doubt_and_goes_on() {
    let ledger = ledger();
    let ask = ledger.effect("conversation", "mail");
    let panicking = tokio::spawn(ask.execute_detached(|_| async {
        assert!(std::env::args().count() == 0, "an effect that panics");
        Ok::<_, EffectError>(())
    }));
    assert!(panicking.await.unwrap_err().is_panic());
    assert_eq!(settled(&ledger, "mail").await, Status::Ambiguous);
}

/// Whenever a caller goes away, the effect is either not begun and free, or done once and known, or in doubt: never pending.
#[tokio::test]
async fn whenever_a_caller_goes_away_nothing_is_left_pending() {
    for polls in 0..30 {
        let (ledger, provider) = (ledger(), Provider::default());
        let mut call = Box::pin(ledger.effect("conversation", "mail").execute(|fx| {
            let provider = provider.clone();
            async move {
                tokio::task::yield_now().await;
                provider.ok(fx).await
            }
        }));
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut call => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(call);
        // Tasks that were left behind run now.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let known = ledger.check(&scope(), &key("mail")).await.unwrap();
        match known.status {
            None | Some(Status::Failed) => assert_eq!(provider.count(), 0, "after {polls} polls"),
            Some(Status::Committed) => assert_eq!(provider.count(), 1, "after {polls} polls"),
            Some(Status::Ambiguous) => {}
            Some(Status::Pending) => panic!("left pending after {polls} polls"),
        }
    }
}
