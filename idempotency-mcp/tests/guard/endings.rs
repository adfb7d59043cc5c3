//! How a call ends, and what its copies get.

use idempotency_agent::{EffectKey, Intent, LedgerScope, Policy, ledger::Resolution};
use idempotency_mcp::{Applied, Guarded, OnToolError};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, ErrorCode, MetaObject},
    service::ServiceError,
};
use serde_json::json;

use crate::scene::{
    Bank, How, answer, internal, ledger, refund, replay_of, result, status, text, tool_error,
};

const NOBODY_KNOWS: &str =
    "Nobody knows whether this was done. Do not repeat it: say so, or hand it to a person.";

#[tokio::test]
async fn a_result_is_given_again_member_by_member() {
    let bank = Bank::by_key();
    let mut full = CallToolResult::structured(json!({"cents": 500, "of": [1.0, "\0", null]}));
    full.content.push(ContentBlock::image("aGk=", "image/png"));
    full.meta = Some(MetaObject(json!({"com.example/trace": [1, 2]}).as_object().unwrap().clone()));
    let mut bare = CallToolResult::success(Vec::new());
    bare.is_error = None;
    bank.provider.will([full, bare].map(|own| How::Answer(own.into())));
    let client = bank.client().await;
    for key in ["k1", "k2"] {
        let first = result(&client, refund(Some(key), "A")).await;
        let again = result(&client, refund(Some(key), "A")).await;
        assert_eq!(serde_json::to_string(&again).unwrap(), replay_of(&first));
        assert_eq!(again.structured_content.is_some(), key == "k1");
    }
    assert_eq!(bank.provider.posts(), 2);
}

#[tokio::test]
async fn a_tools_error_leaves_its_call_in_doubt_unless_it_is_said_what_it_means() {
    let bank = Bank::by_key();
    bank.provider.will([How::Answer(tool_error().into())]);
    let client = bank.client().await;
    let first = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!((first.is_error, &first.structured_content), (Some(true), &tool_error().structured_content));
    assert_eq!(first.content[0], tool_error().content[0]);
    assert_eq!(
        (status(&first).as_str(), first.content[1].as_text().unwrap().text.as_str()),
        ("ambiguous", NOBODY_KNOWS)
    );
    let again = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!((status(&again).as_str(), text(&again).as_str()), ("ambiguous", NOBODY_KNOWS));
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn a_tools_error_that_is_final_is_given_again() {
    let bank = Bank::new(Guarded::by_key().on_tool_error(OnToolError::Applied));
    bank.provider.will([How::Answer(tool_error().into())]);
    let client = bank.client().await;
    let first = result(&client, refund(Some("k1"), "A")).await;
    let mut again = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!((status(&first).as_str(), status(&again).as_str()), ("executed", "replayed"));
    assert_eq!((first.is_error, &first.structured_content), (Some(true), &tool_error().structured_content));
    again.meta = None;
    assert_eq!(again, first);
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn a_tools_error_that_means_nothing_happened_runs_again_as_often_as_it_may() {
    let bank = Bank::new(Guarded::by_key().on_tool_error(OnToolError::NotApplied));
    bank.provider.will([(); 3].map(|()| How::Answer(tool_error().into())));
    let client = bank.client().await;
    for _ in 0..2 {
        let own = result(&client, refund(Some("k1"), "A")).await;
        assert_eq!((own.content, own.meta), (tool_error().content, None));
    }
    let last = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!(
        (status(&last).as_str(), last.structured_content),
        ("failed", tool_error().structured_content)
    );
    assert!(text(&result(&client, refund(Some("k1"), "A")).await).contains("failed as often as it may"));
    assert_eq!(bank.provider.posts(), 3);
}

#[tokio::test]
async fn an_error_of_the_protocol_is_proof_only_where_it_blames_the_request() {
    let bank = Bank::by_key();
    let blame = |code| ErrorData::new(code, "no such order", None);
    bank.provider.will([
        How::Refuse(blame(ErrorCode::INVALID_PARAMS)),
        How::Refuse(blame(ErrorCode::INVALID_REQUEST)),
        How::Fail(internal()),
    ]);
    let client = bank.client().await;
    for code in [ErrorCode::INVALID_PARAMS, ErrorCode::INVALID_REQUEST] {
        let refused = answer(&client, refund(Some("k1"), "A")).await;
        assert!(matches!(refused, Err(ServiceError::McpError(error)) if error == blame(code)));
    }
    let lost = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!(text(&lost), format!("connection reset\n{NOBODY_KNOWS}"));
    assert_eq!((status(&lost).as_str(), lost.is_error), ("ambiguous", Some(true)));
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn a_server_may_say_what_its_errors_of_the_protocol_mean() {
    let says = |error: &ErrorData| {
        if error.message == "connection refused" { Applied::No } else { Applied::Unknown }
    };
    let bank = Bank::new(Guarded::by_key().on_protocol_error(says));
    let refused = || ErrorData::internal_error("connection refused", None);
    bank.provider.will([How::Refuse(refused()), How::Refuse(ErrorData::invalid_params("who knows", None))]);
    let client = bank.client().await;
    assert!(answer(&client, refund(Some("k1"), "A")).await.is_err());
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "ambiguous");
    assert_eq!(bank.provider.posts(), 0);
}

#[tokio::test]
async fn after_its_point_of_no_return_neither_a_question_nor_a_refusal_is_proof() {
    let bank = Bank::new(Guarded::by_key().with_point_of_no_return());
    let refusal = ErrorData::invalid_params("no such order", None);
    bank.provider.will([How::Refuse(refusal), How::Ask("sure?")].map(|how| How::Mark(Box::new(how))));
    let client = bank.client().await;
    for (key, posts) in [("k1", 1), ("k2", 2)] {
        for _ in 0..2 {
            let told = result(&client, refund(Some(key), "A")).await;
            assert_eq!((status(&told).as_str(), bank.provider.posts()), ("ambiguous", posts));
        }
    }
}

#[tokio::test]
async fn a_panic_of_a_function_of_the_servers_own_is_answered_and_nothing_runs() {
    let bank = Bank::new(Guarded::by(|_| std::panic::resume_unwind(Box::new("an identity that panics"))));
    let client = bank.client().await;
    let refused = answer(&client, refund(Some("k1"), "A")).await;
    let told =
        matches!(&refused, Err(ServiceError::McpError(error)) if error.message.ends_with("did nothing"));
    assert!(told, "{refused:?}");
    assert_eq!(bank.provider.posts(), 0);
}

#[tokio::test]
async fn a_panic_is_answered_and_leaves_doubt_until_somebody_finds_out() {
    let ledger = ledger(Policy::new());
    let bank = Bank::with_ledger(&ledger, |guard| {
        guard.scope("bank").tool("refund", Guarded::by(|call| call.argument("order").cloned()))
    });
    let bank = bank.unwrap();
    bank.provider.will([How::Panic]);
    let client = bank.client().await;
    for _ in 0..2 {
        let told = result(&client, refund(None, "A")).await;
        assert_eq!((status(&told).as_str(), text(&told).as_str()), ("ambiguous", NOBODY_KNOWS));
    }
    let (scope, intent) = (LedgerScope::new("bank").unwrap(), Intent::new("refund").unwrap());
    let key = EffectKey::identified(&intent, "A").unwrap();
    let found = ledger.resolve(&scope, &key, Resolution::NotApplied, None, None).await.unwrap().unwrap();
    assert_eq!(found.intent, "refund");
    assert_eq!(status(&result(&client, refund(None, "A")).await), "executed");
    assert_eq!(bank.provider.posts(), 2);
}

#[tokio::test]
async fn what_a_person_resolved_without_a_result_is_known_to_be_done() {
    let ledger = ledger(Policy::new());
    let bank = Bank::with_ledger(&ledger, |guard| {
        guard.scope("bank").tool("refund", Guarded::by(|call| call.argument("order").cloned()))
    });
    let bank = bank.unwrap();
    bank.provider.will([How::Fail(internal())]);
    let client = bank.client().await;
    result(&client, refund(None, "A")).await;
    let (scope, intent) = (LedgerScope::new("bank").unwrap(), Intent::new("refund").unwrap());
    let key = EffectKey::identified(&intent, "A").unwrap();
    ledger.resolve(&scope, &key, Resolution::Committed, None, None).await.unwrap().unwrap();
    let again = result(&client, refund(None, "A")).await;
    assert!(text(&again).starts_with("This was done before and was not repeated."), "{}", text(&again));
    assert_eq!((again.is_error, bank.provider.posts()), (Some(true), 1));
}

#[tokio::test]
async fn a_result_too_large_to_keep_is_answered_once_and_known_ever_after() {
    let ledger = ledger(Policy::new().max_result_bytes(1_000));
    let bank = Bank::with_ledger(&ledger, |guard| guard.scope("bank").tool("refund", Guarded::by_key()));
    let bank = bank.unwrap();
    let large = CallToolResult::success(vec![ContentBlock::text("x".repeat(1_000))]);
    bank.provider.will([How::Answer(large.clone().into())]);
    let client = bank.client().await;
    assert_eq!(result(&client, refund(Some("k1"), "A")).await.content, large.content);
    let again = result(&client, refund(Some("k1"), "A")).await;
    assert_eq!((status(&again).as_str(), again.is_error), ("replayed", Some(true)));
    assert!(text(&again).starts_with("This was done before and was not repeated."), "{}", text(&again));
    assert_eq!(bank.provider.posts(), 1);
}
