//! Defects of agents and their tools that were reported in public, by number. Of the others, what concerns runs on one
//! conversation (A8: a second message starts a blind run; A9: a sweeper answers what is being answered) has no place in a
//! call of MCP, which knows no conversation: idempotency-agent's own tests cover them in `door/runs.rs`.

use std::time::Duration;

use idempotency_agent::Policy;
use idempotency_mcp::{GuardError, Guarded};
use serde_json::json;

use crate::scene::{
    Bank, How, answer, call, internal, ledger, refund, replay_of, result, status, text, tool_error,
};

/// The mail is sent, the tool reports an error, and the retry sends it again.
#[tokio::test]
async fn bug_a1_an_error_after_the_deed_is_not_tried_again() {
    for how in [How::Answer(tool_error().into()), How::Fail(internal())] {
        let bank = Bank::by_key();
        bank.provider.will([how]);
        let client = bank.client().await;
        for _ in 0..2 {
            assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
        }
        assert_eq!(bank.provider.posts(), 1);
    }
}

/// The client sends a key, and nothing of it reaches the provider.
#[tokio::test]
async fn bug_a2_the_provider_sees_one_key_over_all_attempts_and_servers() {
    let shared = ledger(Policy::new());
    let marked = || {
        let tool =
            Guarded::by_key().with_point_of_no_return().on_protocol_error(|_| idempotency_mcp::Applied::No);
        Bank::with_ledger(&shared, |guard| guard.scope("bank").tool("refund", tool)).unwrap()
    };
    let (one, other) = (marked(), marked());
    one.provider.will([How::Fail(internal())]);
    assert!(answer(&one.client().await, refund(Some("k1"), "A")).await.is_err());
    assert_eq!(status(&result(&other.client().await, refund(Some("k1"), "A")).await), "executed");
    assert_eq!(status(&result(&other.client().await, refund(Some("k2"), "A")).await), "executed");
    let (first, later) = (one.provider.keys(), other.provider.keys());
    assert_eq!((first.len(), later.len()), (1, 2));
    assert!(
        first[0] == later[0] && first[0] != later[1] && first[0].starts_with("ro_"),
        "{first:?} {later:?}"
    );
}

/// Nothing marks two attempts as the same send.
#[test]
fn bug_a3_a_tool_that_writes_without_an_identity_does_not_start() {
    let refused = Bank::guarded(|guard| guard.scope("bank")).err();
    assert_eq!(refused, Some(GuardError::Unidentified { tools: vec!["refund".to_owned()] }));
}

/// The protocol has no key, and rounds of one call look like others.
#[tokio::test]
async fn bug_a4_other_arguments_under_a_key_conflict_and_a_later_round_does_not() {
    let bank = Bank::by_key();
    bank.provider.will([How::Ask("sure?")]);
    let client = bank.client().await;
    answer(&client, refund(Some("k1"), "A")).await.unwrap();
    let later = refund(Some("k1"), "A").with_request_state("sure?");
    assert_eq!(status(&result(&client, later).await), "executed");
    let other = result(&client, refund(Some("k1"), "B")).await;
    assert!(status(&other) == "refused" && text(&other).contains("other arguments"), "{other:?}");
    assert_eq!(bank.provider.posts(), 1);
}

/// Retries post writes again.
#[tokio::test]
async fn bug_a5_a_lost_reply_and_a_retry_come_to_one_post() {
    let bank = Bank::by_key();
    let unlucky = bank.client_that_loses_its_answer().await;
    assert!(answer(&unlucky, refund(Some("k1"), "A")).await.is_err());
    assert_eq!(bank.provider.posts(), 1);
    let again = result(&bank.client().await, refund(Some("k1"), "A")).await;
    assert_eq!((status(&again).as_str(), bank.provider.posts()), ("replayed", 1));
}

/// A lease lapses, and a write that was committed is repeated.
#[tokio::test(start_paused = true)]
async fn bug_a6_a_call_that_stalls_past_its_time_is_not_run_again() {
    let bank = Bank::with_ledger(&ledger(Policy::new().pending(Duration::from_secs(30))), |guard| {
        guard.scope("bank").tool("refund", Guarded::by_key())
    });
    let bank = bank.unwrap();
    bank.provider.will([How::Hold]);
    let client = bank.client().await;
    let stalled = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!(status(&stalled), "ambiguous");
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
    assert_eq!(bank.provider.posts(), 1);
}

/// A replay has another shape than the result, and `isError` is lost.
#[tokio::test]
async fn bug_a7_a_replay_is_the_whole_result() {
    for structured in [None, Some(json!(null)), Some(json!({"a": [1, 1.0]}))] {
        let bank = Bank::new(Guarded::by_key().on_tool_error(idempotency_mcp::OnToolError::Applied));
        let mut own = tool_error();
        own.structured_content = structured;
        bank.provider.will([How::Answer(own.into())]);
        let client = bank.client().await;
        let first = result(&client, refund(Some("k1"), "A")).await;
        let again = result(&client, refund(Some("k1"), "A")).await;
        assert_eq!(serde_json::to_string(&again).unwrap(), replay_of(&first));
    }
}

/// An approved tool runs twice when a cancellation lands late.
#[tokio::test]
async fn bug_a10_a_call_that_is_cancelled_after_the_deed_is_not_run_again() {
    let bank = Bank::new(Guarded::by_key().with_point_of_no_return());
    bank.provider.will([How::Mark(Box::new(How::HeedCancelling))]);
    let client = std::sync::Arc::new(bank.client().await);
    let cancelled = tokio::spawn({
        let client = std::sync::Arc::clone(&client);
        async move { answer(&client, refund(Some("k1"), "A")).await }
    });
    bank.provider.posted(1).await;
    cancelled.abort(); // the client says so to the server
    let told = loop {
        let copy = result(&client, refund(Some("k1"), "A")).await;
        if status(&copy) != "in_flight" {
            break copy;
        }
    };
    assert_eq!((status(&told).as_str(), bank.provider.posts()), ("ambiguous", 1));
}

/// A resumed agent goes through its whole script again.
#[tokio::test]
async fn bug_a11_a_script_that_is_gone_through_again_repeats_nothing() {
    let bank = Bank::by_key();
    let client = bank.client().await;
    for expected in ["executed", "replayed"] {
        for order in ["A", "B", "C"] {
            let done = result(&client, call("refund", Some(order), json!({"order": order}))).await;
            assert_eq!(status(&done), expected);
        }
    }
    assert_eq!(bank.provider.posts(), 3);
}

/// Whether a call had begun is guessed from signs of life.
#[tokio::test]
async fn bug_a12_what_ends_before_the_point_of_no_return_is_run_again_and_what_ends_after_it_is_not() {
    let bank = Bank::new(Guarded::by_key().with_point_of_no_return());
    bank.provider.will([How::Refuse(internal()), How::Mark(Box::new(How::Fail(internal())))]);
    let client = bank.client().await;
    assert!(answer(&client, refund(Some("k1"), "A")).await.is_err());
    assert_eq!(bank.provider.posts(), 0);
    for _ in 0..2 {
        assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
    }
    assert_eq!(bank.provider.posts(), 1);
}

/// There was nothing to try a success with whose answer is lost. Here is one, and without a guard it does it twice.
#[tokio::test]
async fn bug_a13_a_server_that_does_it_and_loses_its_answer() {
    for (guarded, posts) in [(false, 2), (true, 1)] {
        let bank = Bank::guarded(|guard| match guarded {
            true => guard.scope("bank").tool("refund", Guarded::by_key()),
            false => guard.scope("bank").unguarded("refund"),
        });
        let bank = bank.unwrap();
        let unlucky = bank.client_that_loses_its_answer().await;
        assert!(answer(&unlucky, refund(Some("k1"), "A")).await.is_err());
        let again = result(&bank.client().await, refund(Some("k1"), "A")).await;
        assert_eq!((again.is_error, bank.provider.posts()), (Some(false), posts));
    }
}

/// A tool says that it is idempotent, and its records last for a day.
#[test]
fn bug_a14_a_guarded_tool_claims_no_hint() {
    let bank = Bank::by_key();
    assert_eq!(bank.tools.get("refund").unwrap().annotations, None);
}
