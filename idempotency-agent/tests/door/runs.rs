//! Runs: who may write, and who has seen what.

use std::time::Duration;

use idempotency_agent::{ConflictMode, Outcome, Refusal, RunState, ledger::Conflicts};
use idempotency_core::clock::Clock;

use crate::scene::{Provider, RuntimeClock, entry, ledger, scope};

fn told<T: std::fmt::Debug>(outcome: Outcome<T>) -> Conflicts {
    match outcome {
        Outcome::Refused(Refusal::ConversationChanged(conflicts)) => conflicts,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_second_message_takes_the_place_of_the_first() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = ledger.run("conversation").id("message 1").begin().await.unwrap();
    let second = ledger.run("conversation").id("message 2").begin().await.unwrap();
    assert!(first.can_write() && second.can_write() && second.token() > first.token());
    let blind = first.effect("reply").identity(&[1]).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(blind, Outcome::Refused(Refusal::Superseded)));
    let both = second.effect("reply").identity(&[1, 2]).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(both.is_done());
    assert_eq!(
        (provider.count(), first.heartbeat().await.unwrap(), second.heartbeat().await.unwrap()),
        (1, false, true)
    );
}

#[tokio::test]
async fn a_redelivery_resumes_fences_the_first_delivery_and_repeats_nothing() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = ledger.run("conversation").id("job").begin().await.unwrap();
    assert!(first.effect("refund").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    let again = ledger.run("conversation").id("job").begin().await.unwrap();
    assert_eq!((again.state(), again.already_wrote(), again.prior().len()), (&RunState::Resumed, true, 1));
    assert!(matches!(
        again.effect("refund").execute(|fx| provider.ok(fx)).await.unwrap(),
        Outcome::Replayed(1)
    ));
    let late = first.effect("mail").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(late, Outcome::Refused(Refusal::Superseded)));
    assert!(again.effect("mail").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    again.end("completed").await.unwrap();
    let third = ledger.run("conversation").id("job").begin().await.unwrap();
    assert_eq!((third.state(), third.can_write()), (&RunState::Ended, false));
    let ended = third.effect("other").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(ended, Outcome::Refused(Refusal::RunEnded)));
    assert_eq!(provider.count(), 2);
}

#[tokio::test]
async fn who_has_not_seen_what_others_wrote_is_told_and_may_then_decide_again() {
    let (ledger, provider) = (ledger(), Provider::default());
    let run = ledger.run("conversation").begin().await.unwrap();
    let other =
        ledger.effect("conversation", "reply").summary("a colleague answered").execute(|fx| provider.ok(fx));
    assert!(other.await.unwrap().is_done());
    let conflicts = told(run.effect("refund").execute(|fx| provider.ok(fx)).await.unwrap());
    assert_eq!((conflicts.total, conflicts.listed[0].summary.as_deref()), (1, Some("a colleague answered")));
    assert!(run.effect("refund").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    assert_eq!(entry(&ledger, "refund").await.1.run_id.as_deref(), Some(run.id()));
}

#[tokio::test]
async fn without_acknowledging_it_stays_unseen() {
    let (ledger, provider) = (ledger(), Provider::default());
    let run = ledger.run("conversation").begin().await.unwrap();
    assert!(ledger.effect("conversation", "tag").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    for _ in 0..2 {
        told(run.effect("refund").without_acknowledging().execute(|fx| provider.ok(fx)).await.unwrap());
    }
    let same =
        run.effect("refund").conflict(ConflictMode::SameIntent).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(same.is_done());
    let none = run.effect("reply").conflict(ConflictMode::None).execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(none.is_done());
}

#[tokio::test]
async fn what_was_written_while_a_run_read_is_unseen() {
    let clock = RuntimeClock::new();
    let store = idempotency_store_memory::MemoryLedger::new().with_clock(clock.clone());
    let (ledger, provider) = (idempotency_agent::Ledger::new(store), Provider::default());
    let read_at = clock.now();
    assert!(ledger.effect("conversation", "reply").execute(|fx| provider.ok(fx)).await.unwrap().is_done());
    let run = ledger.run("conversation").context_at(read_at).begin().await.unwrap();
    assert_eq!(told(run.effect("refund").execute(|fx| provider.ok(fx)).await.unwrap()).total, 1);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_run_keeps_others_out_while_it_lives() {
    let (ledger, provider) = (ledger(), Provider::default());
    let first = ledger.run("conversation").id("a").exclusive().begin().await.unwrap();
    let second = ledger.run("conversation").id("b").exclusive().begin().await.unwrap();
    assert!(matches!(second.state(), RunState::Busy(holder) if holder.run_id == "a"));
    assert_eq!(
        (second.token(), second.heartbeat().await.unwrap(), second.end("x").await.is_ok()),
        (None, false, true)
    );
    let busy = second.effect("reply").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(busy, Outcome::Refused(Refusal::Busy(_))));
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(first.heartbeat().await.unwrap());
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(!ledger.run("conversation").id("b").exclusive().begin().await.unwrap().can_write());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(ledger.run("conversation").id("b").exclusive().begin().await.unwrap().can_write());
}

#[tokio::test]
async fn a_run_that_is_withdrawn_may_not_write() {
    let (ledger, provider) = (ledger(), Provider::default());
    let run = ledger.run("conversation").id("job").begin().await.unwrap();
    assert!(ledger.cancel(&scope(), "job").await.unwrap());
    assert!(!ledger.cancel(&scope(), "nobody").await.unwrap());
    let refused = run.effect("reply").execute(|fx| provider.ok(fx)).await.unwrap();
    assert!(matches!(refused, Outcome::Refused(Refusal::RunCancelled)));
    assert_eq!(provider.count(), 0);
}
