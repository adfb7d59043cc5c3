//! Jobs of a queue and events of webhooks.

use std::{sync::Arc, time::Duration};

use idempotency_agent::{
    Advice, Delivered, EffectError, EffectKey, Intent, Ledger, Outcome, Run, WebhookAnswer,
    ledger::{Resolution, Status},
};
use idempotency_store_memory::MemoryLedger;
use tokio::sync::oneshot;

use crate::scene::{Provider, builder, ledger, policy, scope};

pub(crate) type Work = Result<u32, EffectError>;

/// An effect's value, or what else became of it as the work's error.
pub(crate) fn done(outcome: Outcome<u32>) -> Work {
    let name = outcome.name();
    outcome.into_value().ok_or_else(|| EffectError::unknown(name))
}

/// Replies once, and says so.
pub(crate) async fn reply(run: Arc<Run<MemoryLedger>>, provider: Provider) -> Work {
    done(run.effect("reply").execute(|fx| provider.ok(fx)).await?)
}

pub(crate) async fn deliver(
    ledger: &Ledger<MemoryLedger>,
    id: &str,
    provider: &Provider,
) -> Delivered<u32, EffectError> {
    let job = ledger.job("conversation", "replies", id);
    job.work(|run| reply(run, provider.clone())).await.unwrap()
}

#[tokio::test]
async fn a_job_that_is_delivered_again_is_worked_on_once() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = deliver(&ledger, "1", &provider).await;
    assert!(matches!(first, Delivered::Done(1)));
    let again = ledger.job("conversation", "replies", 1).work(|_| async { Err::<u32, _>("worked on") });
    let again = again.await.unwrap();
    assert!(matches!(again, Delivered::AlreadyDone), "{again:?}");
    assert_eq!((first.advice(), again.advice()), (Advice::Acknowledge, Advice::Acknowledge));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn what_failed_is_taken_up_again_and_what_it_did_is_not_repeated() {
    let (ledger, provider) = (ledger(), Provider::default());
    let failed = ledger.job("conversation", "replies", 1).work(|run| async {
        reply(run, provider.clone()).await?;
        Err::<u32, _>(EffectError::not_applied("the second step failed"))
    });
    let failed = failed.await.unwrap();
    assert!(matches!(failed, Delivered::Failed(_)), "{failed:?}");
    assert_eq!(failed.advice(), Advice::Retry);
    assert!(matches!(deliver(&ledger, "1", &provider).await, Delivered::Done(1)));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn a_job_of_one_effect_may_be_skipped_once_it_wrote() {
    let (ledger, provider) = (ledger(), Provider::default());
    let crashed = ledger.job("conversation", "replies", 1).work(|run| async {
        reply(run, provider.clone()).await?;
        Err::<u32, _>(EffectError::not_applied("crashed"))
    });
    assert!(matches!(crashed.await.unwrap(), Delivered::Failed(_)));
    for _ in 0..2 {
        let job = ledger.job("conversation", "replies", 1).skip_if_it_wrote();
        let skipped = job.work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap();
        assert!(matches!(skipped, Delivered::AlreadyDone), "{skipped:?}");
    }
    // Another job of the same queue is another.
    let job = ledger.job("conversation", "replies", 2).skip_if_it_wrote();
    assert!(matches!(job.work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap(), Delivered::Done(7)));
}

#[tokio::test]
async fn a_job_in_doubt_is_not_called_done() {
    let (ledger, provider) = (ledger(), Provider::default());
    let lose = |run: Arc<Run<MemoryLedger>>| async move {
        let lost =
            run.effect("reply").execute(|_| async { Err::<u32, _>(EffectError::unknown("timed out")) });
        assert!(matches!(lost.await.unwrap(), Outcome::Ambiguous { .. }));
        Err::<u32, _>(EffectError::unknown("no reply"))
    };
    let lost = ledger.job("conversation", "replies", 1).work(lose).await.unwrap();
    assert!(matches!(&lost, Delivered::InDoubt { effects, error: Some(_) } if effects[0].intent == "reply"));
    assert_eq!(lost.advice(), Advice::Park);
    let skipping = || ledger.job("conversation", "replies", 1).skip_if_it_wrote();
    let again = skipping().work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap();
    assert!(matches!(&again, Delivered::InDoubt { effects, error: None } if effects.len() == 1), "{again:?}");

    let key = EffectKey::of_intent(&Intent::new("reply").unwrap());
    ledger.resolve(&scope(), &key, Resolution::NotApplied, None, None).await.unwrap().unwrap();
    let at_last = skipping().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(at_last, Delivered::Done(1)), "{at_last:?}");
}

#[tokio::test(start_paused = true)]
async fn what_crashed_before_its_point_of_no_return_is_nothing_to_skip() {
    let (ledger, provider) = (ledger(), Provider::default());
    let job = ledger.job("conversation", "replies", 1);
    let (begun, has_begun) = oneshot::channel::<()>();
    let crash = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let work = job.work(|run| async move {
                let reply = run.effect("reply").with_point_of_no_return().execute(|_| async move {
                    begun.send(()).unwrap();
                    std::future::pending::<Work>().await
                });
                reply.await.map(Outcome::into_value)
            });
            tokio::select! {
                _ = work => panic!("it never ends"),
                begun = has_begun => begun.unwrap(),
            }
        }); // ends before anything of it is recorded
    });
    crash.join().unwrap();
    let job = || ledger.job("conversation", "replies", 1).skip_if_it_wrote();
    let soon = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(soon, Delivered::InFlight { error: None, .. }), "{soon:?}");
    tokio::time::advance(Duration::from_secs(20)).await;
    let later = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(later, Delivered::Done(1)), "{later:?}");
}

#[tokio::test]
async fn a_delivery_that_comes_while_an_earlier_one_writes_is_put_off() {
    let (ledger, provider) = (ledger(), Provider::default());
    let ((begun, has_begun), (open, opened)) = (oneshot::channel::<()>(), oneshot::channel::<()>());
    let first = tokio::spawn({
        let (job, provider) = (ledger.job("conversation", "replies", 1), provider.clone());
        job.work(move |run| async move {
            let reply = run.effect("reply").execute(|fx| async move {
                begun.send(()).unwrap();
                opened.await.unwrap();
                provider.ok(fx).await
            });
            Ok::<_, EffectError>(reply.await.unwrap().into_value())
        })
    });
    has_begun.await.unwrap();
    let job = || ledger.job("conversation", "replies", 1).skip_if_it_wrote();
    let second = job().work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap();
    assert!(
        matches!(&second, Delivered::InFlight { effects, error: None } if effects[0].intent == "reply"),
        "{second:?}"
    );
    assert_eq!(second.advice(), Advice::RetryAfter(Duration::from_secs(5)));
    let exclusive = ledger.job("conversation", "replies", 2).exclusive();
    let other = exclusive.work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap();
    assert!(matches!(&other, Delivered::Busy(holder) if holder.run_id == "replies:1"), "{other:?}");
    assert_eq!(other.advice(), Advice::RetryAfter(Duration::from_secs(5)));
    open.send(()).unwrap();
    // What it claimed it may end, although a later delivery has taken its place: which decides what the queue is told.
    let first = first.await.unwrap().unwrap();
    assert!(matches!(first, Delivered::Overtaken(Some(1))), "{first:?}");
    assert_eq!(first.advice(), Advice::RetryAfter(Duration::from_secs(5)));
    let third = job().work(|_| async { Ok::<u32, EffectError>(7) }).await.unwrap();
    assert!(matches!(third, Delivered::AlreadyDone), "{third:?}");
    assert_eq!(provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_job_keeps_its_run_alive() {
    let ledger = ledger();
    let (open, opened) = oneshot::channel::<()>();
    let long = tokio::spawn(ledger.job("conversation", "replies", 1).exclusive().work(|_| async move {
        opened.await.unwrap();
        Ok::<u32, EffectError>(1)
    }));
    // The run of a job lives as long as the policy's lease.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let other = ledger.job("conversation", "replies", 2).exclusive();
    let other = other.work(|_| async { Ok::<u32, EffectError>(2) }).await.unwrap();
    assert!(matches!(other, Delivered::Busy(_)), "{other:?}");
    open.send(()).unwrap();
    assert!(matches!(long.await.unwrap().unwrap(), Delivered::Done(1)));
    let other = ledger.job("conversation", "replies", 2).exclusive();
    assert!(matches!(other.work(|_| async { Ok::<u32, EffectError>(2) }).await.unwrap(), Delivered::Done(2)));
}

#[tokio::test]
async fn an_event_has_its_effect_once_and_its_sender_is_told_whether_to_send_it_again() {
    let ledger = builder().policy(policy().max_attempts(2)).build().unwrap();
    let provider = Provider::default();
    let answer = |status, seconds: Option<u64>| WebhookAnswer {
        status,
        retry_after: seconds.map(Duration::from_secs),
    };
    for id in ["evt_1", "evt_1", "evt_2"] {
        let outcome = ledger.webhook("conversation", id).execute(|fx| provider.ok(fx)).await.unwrap();
        assert_eq!(outcome.webhook_answer(), answer(200, None));
    }
    assert_eq!(provider.count(), 2);
    let refuse = || async { Err::<u32, _>(EffectError::not_applied("down")) };
    for status in [500, 200, 200] {
        let outcome = ledger.webhook("conversation", "evt_3").execute(|_| refuse()).await.unwrap();
        assert_eq!(outcome.webhook_answer(), answer(status, None), "{outcome:?}");
    }
    let lost = ledger.webhook("conversation", "evt_4").execute(|_| async {
        let copy = ledger.webhook("conversation", "evt_4").execute(|fx| provider.ok(fx)).await.unwrap();
        assert_eq!(copy.webhook_answer(), answer(503, Some(5)));
        Err::<u32, _>(EffectError::unknown("timed out"))
    });
    assert_eq!(lost.await.unwrap().webhook_answer(), answer(200, None));
    // The keys are those of other workers.
    let history = ledger.history(&scope()).await.unwrap();
    let payload = serde_json::json!({"eventId": "evt_1"});
    let key = EffectKey::identified(&Intent::new("webhook").unwrap(), &payload).unwrap();
    assert!(
        history.iter().any(|(effect, status)| effect.key == key.as_str() && *status == Status::Committed)
    );
}
