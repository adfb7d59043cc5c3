//! Callers that go away.

use std::time::Duration;

use idempotency_agent::{EffectError, Outcome, ledger::Status};
use tokio::{sync::oneshot, time::sleep};

use crate::scene::{Provider, entry, key, ledger, original, scope};

/// Waits until an effect is no longer pending.
async fn settled<S: idempotency_core::LedgerStore>(
    ledger: &idempotency_agent::Ledger<S>,
    intent: &str,
) -> Status {
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
