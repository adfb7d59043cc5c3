//! What a queue is told of a job that did not come to its end.

use std::{future::pending, sync::Arc, time::Duration};

use idempotency_agent::{
    Advice, Delivered, EffectError, LedgerError, NameError, Outcome, Policy, Reconciled, Run,
};
use idempotency_core::clock::Timestamp;
use idempotency_store_memory::MemoryLedger;
use tokio::sync::oneshot;

use crate::{
    jobs::{Work, deliver, done, reply},
    scene::{Provider, builder, ledger, policy},
};

const LATER: Advice = Advice::RetryAfter(Duration::from_secs(5));

async fn lose(run: Arc<Run<MemoryLedger>>, provider: Provider) -> Work {
    done(run.effect("reply").execute(|fx| provider.lost(fx)).await?)
}

/// The work may call itself done whatever became of its effects: the job is not.
#[tokio::test]
async fn work_that_leaves_an_effect_in_doubt_or_running_is_not_done() {
    let (ledger, provider) = (ledger(), &Provider::default());
    let lost = ledger.job("conversation", "replies", 1).work(|run| async move {
        Ok::<_, EffectError>(run.effect("reply").execute(|fx| provider.lost(fx)).await)
    });
    let lost = lost.await.unwrap();
    assert!(matches!(&lost, Delivered::InDoubt { effects, error: None } if effects.len() == 1), "{lost:?}");
    assert_eq!(lost.advice(), Advice::Park);
    assert!(matches!(deliver(&ledger, "1", provider).await, Delivered::InDoubt { .. }));
    assert_eq!(provider.count(), 1);

    let (begun, has_begun) = oneshot::channel::<()>();
    let running = tokio::spawn(ledger.effect("conversation", "mail").execute(|_| async move {
        begun.send(()).unwrap();
        pending::<Work>().await
    }));
    has_begun.await.unwrap();
    let early = ledger.job("conversation", "replies", 2).work(|run| async move {
        Ok::<_, EffectError>(run.effect("mail").execute(|fx| provider.ok(fx)).await)
    });
    let early = early.await.unwrap();
    assert!(matches!(early, Delivered::InFlight { error: None, .. }), "{early:?}");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_effect_a_dead_worker_began_is_put_off_and_then_in_doubt() {
    let (ledger, provider) = (ledger(), Provider::default());
    let job = ledger.job("conversation", "replies", 1);
    let (begun, has_begun) = oneshot::channel::<()>();
    let crash = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let work = job.work(|run| async move {
                let reply = run.effect("reply").execute(|_| async move {
                    begun.send(()).unwrap();
                    pending::<Work>().await
                });
                done(reply.await?)
            });
            tokio::select! {
                _ = work => panic!("it never ends"),
                begun = has_begun => begun.unwrap(),
            }
        }); // ends before anything of it is recorded
    });
    crash.join().unwrap();
    let soon = deliver(&ledger, "1", &provider).await;
    assert!(matches!(soon, Delivered::InFlight { error: Some(_), .. }), "{soon:?}");
    assert_eq!(soon.advice(), LATER);
    tokio::time::advance(Duration::from_secs(20)).await;
    let later = deliver(&ledger, "1", &provider).await;
    assert!(matches!(later, Delivered::InDoubt { error: Some(_), .. }), "{later:?}");
    assert_eq!((later.advice(), provider.count()), (Advice::Park, 0));
}

#[tokio::test]
async fn a_job_that_asks_for_what_is_refused_for_good_is_parked() {
    let ledger = builder().policy(policy().max_attempts(2)).build().unwrap();
    let provider = Provider::default();
    let refuse = |run: Arc<Run<MemoryLedger>>| async {
        let run = run;
        done(run.effect("reply").execute(|fx| provider.refused(fx)).await?)
    };
    for advice in [Advice::Retry, Advice::Park, Advice::Park] {
        let failed = ledger.job("conversation", "replies", 1).work(refuse).await.unwrap();
        assert_eq!(failed.advice(), advice, "{failed:?}");
    }
    let pay = |id: u32| {
        let provider = provider.clone();
        ledger.job("conversation", "payments", id).work(move |run| async move {
            done(run.effect("pay").payload(&id).execute(|fx| provider.ok(fx)).await?)
        })
    };
    assert!(matches!(pay(1).await.unwrap(), Delivered::Done(1)));
    let changed = pay(2).await.unwrap();
    assert!(
        matches!(&changed, Delivered::Hopeless { effects, .. } if effects[0].intent == "pay"),
        "{changed:?}"
    );
    assert_eq!(changed.advice(), Advice::Park);
}

#[tokio::test]
async fn a_job_that_meets_the_doubt_of_another_is_parked() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = ledger.job("conversation", "replies", 1).work(|run| lose(run, provider.clone()));
    assert_eq!(first.await.unwrap().advice(), Advice::Park);
    let second = deliver(&ledger, "2", &provider).await;
    assert!(matches!(&second, Delivered::InDoubt { error: Some(_), .. }), "{second:?}");
    assert_eq!(second.advice(), Advice::Park);
}

#[tokio::test]
async fn a_job_to_skip_once_it_wrote_has_its_reconciler_asked() {
    let provider = Provider::default();
    let ledger = builder()
        .reconciler(|_| async { Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Reconciled::NotApplied) })
        .build()
        .unwrap();
    let job = || ledger.job("conversation", "replies", 1).skip_if_it_wrote();
    let lost = job().work(|run| lose(run, provider.clone())).await.unwrap();
    assert!(matches!(lost, Delivered::InDoubt { .. }), "{lost:?}");
    let found = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(found, Delivered::Done(2)), "{found:?}");
}

#[tokio::test]
async fn a_job_is_superseded_for_good_only_by_what_a_newer_run_did() {
    let (ledger, provider) = (ledger(), Provider::default());
    let newer = ledger.run("conversation").id("newer").begin().await.unwrap();
    let job = || ledger.job("conversation", "replies", 1).context_at(Timestamp::from_micros(1_000));
    let waiting = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(&waiting, Delivered::Busy(holder) if holder.run_id == "newer"), "{waiting:?}");
    assert_eq!(waiting.advice(), LATER);
    let refused = newer.effect("reply").execute(|fx| provider.refused(fx)).await.unwrap();
    assert!(matches!(refused, Outcome::Failed { retryable: true, .. }));
    assert!(matches!(job().work(|run| reply(run, provider.clone())).await.unwrap(), Delivered::Busy(_)));

    assert!(newer.effect("mail").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    let left = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(left, Delivered::Superseded), "{left:?}");
    assert_eq!(left.advice(), Advice::Acknowledge);
    assert!(newer.heartbeat().await.unwrap());
    let again = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(again, Delivered::AlreadyDone), "{again:?}");
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn a_job_waits_for_a_newer_run_that_comes_to_nothing_and_is_then_worked_on() {
    let (ledger, provider) = (ledger(), Provider::default());
    let newer = ledger.run("conversation").id("newer").begin().await.unwrap();
    let job = || ledger.job("conversation", "replies", 1).context_at(Timestamp::from_micros(1_000));
    let waiting = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert_eq!(waiting.advice(), LATER);
    assert!(newer.end("failed").await.unwrap());
    let worked = job().work(|run| reply(run, provider.clone())).await.unwrap();
    assert!(matches!(worked, Delivered::Done(1)), "{worked:?}");
}

#[tokio::test]
async fn no_two_jobs_or_events_are_taken_for_one() {
    let (ledger, provider) = (ledger(), Provider::default());
    for (queue, id) in [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c")] {
        let job = ledger.job("conversation", queue, id);
        let worked = job.work(|_| async { Ok::<_, EffectError>(provider.send()) }).await.unwrap();
        assert!(matches!(worked, Delivered::Done(_)), "{worked:?}");
    }
    assert_eq!(provider.count(), 3);
    let job = ledger.job("conversation", "replies", "");
    let nameless = job.work(|_| async { Ok::<_, EffectError>(provider.send()) }).await;
    assert!(matches!(nameless, Err(LedgerError::Name(NameError::EmptyId))), "{nameless:?}");
    let nameless = ledger.webhook("conversation", "").execute(|fx| provider.ok(fx)).await;
    assert!(matches!(nameless, Err(LedgerError::Name(NameError::EmptyId))), "{nameless:?}");
    assert_eq!(provider.count(), 3);
}

#[tokio::test]
async fn no_length_of_time_is_too_long_to_be_counted() {
    let endless = Duration::MAX;
    assert!(builder().policy(Policy::new().pending(endless)).build().is_err());
    assert!(builder().policy(Policy::new().lease(endless)).build().is_err());
    let century = Policy::new().pending(Duration::from_secs(3_153_600_000)).retention(endless);
    let (ledger, provider) = (builder().policy(century).build().unwrap(), Provider::default());
    let patient = ledger.effect("conversation", "mail").wait(endless).execute(|fx| provider.ok(fx));
    assert!(patient.await.unwrap().is_done());
}
