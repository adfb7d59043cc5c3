//! What cannot be guarded does not start.

use idempotency_agent::Policy;
use idempotency_mcp::{GuardError, Guarded, guard};
use rmcp::{
    handler::server::router::tool::{ToolRoute, ToolRouter},
    model::{CallToolResult, ToolAnnotations},
};

use crate::scene::{Bank, call, ledger, refund, result, status, tool};

/// A router with one tool of this name and with these annotations.
fn router(name: &'static str, annotations: ToolAnnotations) -> ToolRouter<Bank> {
    let route = ToolRoute::new_dyn(tool(name).with_annotations(annotations), |_| {
        Box::pin(async { Ok(CallToolResult::success(Vec::new()).into()) })
    });
    ToolRouter::new().with_route::<_, ()>(route)
}

#[test]
fn tools_that_write_and_are_not_identified_are_named() {
    let router = Bank::router() + router("send mail", ToolAnnotations::new());
    let refused = guard(router, ledger(Policy::new())).scope("bank").build().unwrap_err();
    assert_eq!(
        refused,
        GuardError::Unidentified { tools: vec!["refund".to_owned(), "send mail".to_owned()] }
    );
    assert!(refused.to_string().contains("what they do: refund, send mail. Give each `Guarded::by_key()`"));
}

#[test]
fn no_hint_but_that_a_tool_only_reads_is_enough() {
    let says = [
        ToolAnnotations::new().idempotent(true).destructive(false),
        ToolAnnotations::new().read_only(false),
        ToolAnnotations::new().open_world(false),
    ];
    for annotations in says {
        let refused = guard(router("a", annotations), ledger(Policy::new())).scope("bank").build();
        assert!(matches!(refused, Err(GuardError::Unidentified { tools }) if tools == ["a"]));
    }
    let reads = router("a", ToolAnnotations::new().read_only(true));
    assert!(guard(reads, ledger(Policy::new())).scope("bank").build().is_ok());
}

#[test]
fn what_does_not_fit_the_router_is_refused() {
    let refused = |choose: fn(idempotency_mcp::Guard<Bank, _>) -> idempotency_mcp::Guard<Bank, _>| {
        Bank::guarded(|guard| choose(guard.tool("refund", Guarded::by_key()))).err().unwrap()
    };
    assert_eq!(refused(|guard| guard), GuardError::NoScope);
    assert!(matches!(refused(|guard| guard.scope("")), GuardError::Scope(_)));
    let tool = "refunds".to_owned();
    assert_eq!(refused(|guard| guard.scope("bank").unguarded("refunds")), GuardError::NoSuchTool { tool });
    let tool = "balance".to_owned();
    assert_eq!(
        refused(|guard| guard.scope("bank").tool("balance", Guarded::by_key())),
        GuardError::ReadOnly { tool }
    );
    let name = "progressToken".to_owned();
    assert_eq!(refused(|guard| guard.scope("bank").key_name("progressToken")), GuardError::KeyName { name });
}

#[test]
fn a_tool_whose_name_is_no_intent_needs_one() {
    let build = |tool: Guarded| {
        let router = router("money/refund", ToolAnnotations::new());
        guard(router, ledger(Policy::new())).scope("bank").tool("money/refund", tool).build()
    };
    assert!(
        matches!(build(Guarded::by_key()), Err(GuardError::Intent { tool, .. }) if tool == "money/refund")
    );
    assert!(build(Guarded::by_key().intent("refund")).is_ok());
}

#[test]
fn tools_of_one_intent_would_answer_for_each_other_and_do_not_start() {
    let mut both = router("refund", ToolAnnotations::new());
    both.merge(router("cancel", ToolAnnotations::new()));
    let every = Guarded::by_key().intent("order");
    let refused = guard(both, ledger(Policy::new())).scope("bank").every_other(every).build();
    let tools = ["cancel", "refund"].map(str::to_owned);
    assert_eq!(refused.err(), Some(GuardError::SharedIntent { intent: "order".to_owned(), tools }));
}

#[tokio::test]
async fn what_is_not_to_be_guarded_runs_each_time() {
    let bank = Bank::guarded(|guard| guard.scope("bank").unguarded("refund")).unwrap();
    let client = bank.client().await;
    for _ in 0..2 {
        assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "executed");
    }
    assert_eq!(bank.provider.keys(), ["unguarded", "unguarded"]);
}

#[tokio::test]
async fn one_word_may_be_for_every_other_tool() {
    let bank = Bank::guarded(|guard| guard.scope("bank").every_other(Guarded::by_key())).unwrap();
    let client = bank.client().await;
    assert_eq!(status(&result(&client, refund(None, "A")).await), "failed");
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "executed");
    assert_eq!(status(&result(&client, refund(Some("k1"), "A")).await), "replayed");
    assert_eq!(status(&result(&client, call("balance", None, serde_json::json!({}))).await), "executed");
    assert_eq!(bank.provider.posts(), 1);
}
