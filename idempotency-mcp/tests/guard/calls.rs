//! Copies of a call: at once, afterwards, with other arguments, of other callers.

use std::{sync::Arc, time::Duration};

use idempotency_mcp::{Applied, Guarded};
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene::{Bank, How, answer, call, meta, refund, result, status, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_copies_at_once_one_runs_and_all_have_its_result() {
    let bank = Bank::guarded(|guard| {
        guard.scope("bank").tool("refund", Guarded::by_key()).wait(Duration::from_secs(60))
    });
    let bank = bank.unwrap();
    bank.provider.will([How::Hold]);
    let mut copies = JoinSet::new();
    for _ in 0..20 {
        let client = bank.client().await;
        copies.spawn(async move { result(&client, refund(Some("k1"), "A")).await });
    }
    bank.provider.posted(1).await;
    bank.provider.open();
    let results = copies.join_all().await;
    assert_eq!(bank.provider.posts(), 1);
    assert!(results.iter().all(|result| result.structured_content == Some(json!({"refund": 1}))));
    let replayed = results.iter().filter(|result| status(result) == "replayed").count();
    assert_eq!((replayed, results.len()), (19, 20));
}

#[tokio::test]
async fn a_copy_is_told_that_the_first_one_runs() {
    let bank = Bank::by_key();
    bank.provider.will([How::Hold]);
    let (client, other) = (bank.client().await, bank.client().await);
    let first = tokio::spawn(async move { result(&client, refund(Some("k1"), "A")).await });
    bank.provider.posted(1).await;
    let copy = result(&other, refund(Some("k1"), "A")).await;
    assert_eq!((status(&copy).as_str(), copy.is_error), ("in_flight", Some(true)));
    assert_eq!(text(&copy), "This is being done elsewhere right now. Do not repeat it.");
    bank.provider.open();
    assert_eq!(status(&first.await.unwrap()), "executed");
    assert_eq!(status(&result(&other, refund(Some("k1"), "A")).await), "replayed");
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn a_copy_that_is_cancelled_while_it_waits_does_not_begin() {
    let refunds = Guarded::by_key().on_protocol_error(|_| Applied::No);
    let minute = Duration::from_secs(60);
    let bank = Bank::guarded(|guard| guard.scope("bank").wait(minute).tool("refund", refunds)).unwrap();
    bank.provider.will([How::HeedCancelling]);
    let client = Arc::new(bank.client().await);
    let begin = || {
        let client = Arc::clone(&client);
        tokio::spawn(async move { answer(&client, refund(Some("k1"), "A")).await })
    };
    let first = begin();
    bank.provider.posted(1).await;
    let copy = begin();
    let balance = || call("balance", None, json!({}));
    result(&client, balance()).await; // the copy is there by now
    copy.abort(); // the client says so to the server
    assert!(copy.await.unwrap_err().is_cancelled());
    result(&client, balance()).await;
    first.abort();
    let last = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!((status(&last).as_str(), bank.provider.posts()), ("executed", 2));
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_cut_a_run_off() {
    let bank = Bank::by_key();
    bank.provider.will([How::Hold]);
    let client = bank.client().await;
    let gone = tokio::spawn(async move { answer(&client, refund(Some("k1"), "A")).await });
    bank.provider.posted(1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let client = bank.client().await;
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "in_flight");
    assert_recorded(&bank).await;
}

#[tokio::test]
async fn a_transport_that_drops_a_call_does_not_cut_its_run_off() {
    let bank = Bank::by_key();
    bank.provider.will([How::Hold]);
    let dropped = answer(&bank.client_of_one_that_drops_calls().await, refund(Some("k1"), "A")).await;
    assert!(dropped.is_err());
    assert_recorded(&bank).await;
}

/// Lets the run go on that nobody waits for, and finds its result.
async fn assert_recorded(bank: &Bank) {
    let client = bank.client().await;
    bank.provider.open();
    let replayed = loop {
        let copy = result(&client, refund(Some("k1"), "A")).await;
        if status(&copy) != "in_flight" {
            break copy;
        }
    };
    assert_eq!(
        (status(&replayed).as_str(), replayed.structured_content),
        ("replayed", Some(json!({"refund": 1})))
    );
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn what_is_read_stays_fresh() {
    let bank = Bank::by_key();
    let client = bank.client().await;
    let balance = || call("balance", Some("k1"), json!({}));
    assert_eq!(text(&result(&client, balance()).await), "0");
    result(&client, refund(Some("k1"), "A")).await;
    let after = result(&client, balance()).await;
    assert_eq!((text(&after).as_str(), status(&after).as_str()), ("1", "executed"));
}

#[tokio::test]
async fn other_arguments_under_a_key_are_refused_and_other_metadata_is_not() {
    let bank = Bank::by_key();
    let client = bank.client().await;
    result(&client, refund(Some("k1"), "A")).await;
    let other = result(&client, refund(Some("k1"), "B")).await;
    assert_eq!(
        (status(&other).as_str(), other.is_error, &other.structured_content),
        ("refused", Some(true), &None)
    );
    assert!(text(&other).contains("other arguments"), "{}", text(&other));

    let mut traced = refund(None, "A");
    traced.meta =
        Some(meta(json!({"idempotency-key": "k1", "traceparent": "00-1-1-01", "progressToken": 7})));
    assert_eq!(status(&result(&client, traced).await), "replayed");
    assert_eq!(status(&result(&client, refund(Some("k2"), "B")).await), "executed");
    assert_eq!(bank.provider.posts(), 2);
}

#[tokio::test]
async fn a_call_without_a_key_is_refused_and_told_where_it_goes() {
    let bank = Bank::guarded(|guard| {
        guard.scope("bank").tool("refund", Guarded::by_key()).key_name("com.example/key")
    });
    let bank = bank.unwrap();
    let client = bank.client().await;
    let long = "k".repeat(256);
    for bad in [json!({}), json!({"idempotency-key": "k1"}), json!({"com.example/key": null})] {
        let mut params = refund(None, "A");
        params.meta = Some(meta(bad));
        let refused = result(&client, params).await;
        assert_eq!((status(&refused).as_str(), refused.is_error), ("failed", Some(true)));
        assert!(
            text(&refused).contains("no idempotency key, `com.example/key` in `_meta`"),
            "{}",
            text(&refused)
        );
    }
    for (bad, why) in [(json!(7), "is no text"), (json!(""), "is empty"), (json!(long), "longer than 255")] {
        let mut params = refund(None, "A");
        params.meta = Some(meta(json!({"com.example/key": bad})));
        let refused = text(&result(&client, params).await);
        assert!(refused.starts_with("Nothing was done: ") && refused.contains(why), "{refused}");
    }
    assert_eq!(bank.provider.posts(), 0);
    let listed = client.peer().list_all_tools().await.unwrap();
    let named = |name: &str| listed.iter().find(|tool| tool.name == name).unwrap().meta.clone();
    assert_eq!(named("refund").unwrap()["idempotency-key"], "com.example/key");
    assert_eq!(named("balance"), None);
}

#[tokio::test]
async fn an_identity_tells_calls_apart_whatever_the_clients_key() {
    let order = Guarded::by(|call| Some(json!({"order": call.argument("order")?})));
    let bank = Bank::new(order.payload(|call| json!(call.argument("cents"))));
    let client = bank.client().await;
    let ask = |key: &'static str, arguments: Value| call("refund", Some(key), arguments);
    let first = json!({"order": "A", "cents": 500, "note": "sorry"});
    let worded_anew = json!({"order": "A", "cents": 500, "note": "we apologise"});
    let other = json!({"order": "A", "cents": 700, "note": "sorry"});
    assert_eq!(status(&result(&client, ask("k1", first)).await), "executed");
    assert_eq!(status(&result(&client, ask("k2", worded_anew)).await), "replayed");
    assert_eq!(status(&result(&client, ask("k3", other)).await), "refused");
    for nameless in [json!({"cents": 500}), json!({"order": null})] {
        let refused = result(&client, ask("k4", nameless)).await;
        assert_eq!(text(&refused), "Nothing was done: the arguments do not say which one is meant.");
    }
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn nobodys_answer_is_anothers() {
    let bank = Bank::guarded(|guard| {
        let user = |call: &idempotency_mcp::Call<'_>| Some(call.meta().get("user")?.as_str()?.to_owned());
        guard.scope_by(user).tool("refund", Guarded::by_key())
    });
    let bank = bank.unwrap();
    let client = bank.client().await;
    let of = |user: Value| {
        let mut params = refund(None, "A");
        params.meta = Some(meta(json!({"idempotency-key": "k1", "user": user})));
        params
    };
    for user in ["ada", "bob"] {
        assert_eq!(status(&result(&client, of(json!(user))).await), "executed");
        assert_eq!(status(&result(&client, of(json!(user))).await), "replayed");
    }
    let nobody = result(&client, of(Value::Null)).await;
    assert_eq!(text(&nobody), "Nothing was done: the call does not say whose it is.");
    // A scope that no ledger takes is the server's fault, and nothing runs.
    assert!(answer(&client, of(json!("x".repeat(600)))).await.is_err());
    assert_eq!(bank.provider.posts(), 2);
}

#[tokio::test]
async fn a_tool_may_mark_its_point_of_no_return_only_if_that_was_said() {
    let bank = Bank::by_key();
    bank.provider.will([How::Mark(Box::new(How::Hold))]);
    let client = bank.client().await;
    let refused = answer(&client, refund(Some("k1"), "A")).await.unwrap();
    assert!(
        matches!(&refused, CallToolResponse::Complete(result) if text(result).contains("without a point of no return"))
    );
    assert_eq!(bank.provider.posts(), 0);
}
