//! Tools that a model calls.

use std::sync::Arc;

use idempotency_agent::{
    EffectError,
    tools::{GuardedTool, ToolSpec, Toolbox},
};
use serde_json::{Value, json};

use crate::scene::{Provider, ledger};

fn toolbox(provider: &Provider) -> Toolbox {
    let provider = Arc::new(provider.clone());
    let parameters = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    let refund = GuardedTool::new(
        ToolSpec::new("refund", "Refunds an order.", parameters),
        |arguments| Some(json!({"order": arguments["order"].as_str()?})),
        move |arguments, _| {
            let provider = Arc::clone(&provider);
            async move {
                match arguments["how"].as_str() {
                    Some("lost") => {
                        provider.send();
                        Err(EffectError::unknown("timed out"))
                    }
                    Some("refused") => Err(EffectError::not_applied("x".repeat(400))),
                    _ => Ok(json!(provider.send())),
                }
            }
        },
    );
    let refund = refund.summary(|arguments| format!("refund of {}", arguments["order"]));
    Toolbox::new().tool(refund).check_tool(Toolbox::CHECK)
}

#[tokio::test]
async fn a_model_that_repeats_a_call_is_told_that_it_was_done() {
    let (ledger, provider) = (ledger(), Provider::default());
    let tools = toolbox(&provider);
    let run = ledger.run("conversation").begin().await.unwrap();
    let first = tools.dispatch(&run, "refund", json!({"order": "A", "note": "please"})).await.unwrap();
    assert_eq!((first.ok, first.status, first.output), (true, "executed", Some(json!(1))));
    let again = tools.dispatch(&run, "refund", json!({"order": "A", "note": "once more"})).await.unwrap();
    assert_eq!((again.ok, again.status, again.output), (true, "replayed", Some(json!(1))));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn a_model_is_told_what_to_make_of_each_outcome() {
    let (ledger, provider) = (ledger(), Provider::default());
    let tools = toolbox(&provider);
    let run = ledger.run("conversation").begin().await.unwrap();
    let facts = |outcome: idempotency_agent::tools::ToolOutcome| {
        (outcome.status, outcome.ok, outcome.terminal, outcome.retryable)
    };
    let call = |arguments: Value| tools.dispatch(&run, "refund", arguments);
    assert_eq!(
        facts(call(json!({"order": "A", "how": "lost"})).await.unwrap()),
        ("ambiguous", false, false, false)
    );
    let refused = call(json!({"order": "B", "how": "refused"})).await.unwrap();
    assert!(refused.message.len() < 400);
    assert_eq!(facts(refused), ("failed", false, false, true));
    assert_eq!(
        facts(call(json!({"order": "B", "how": "refused"})).await.unwrap()),
        ("failed", false, false, true)
    );
    assert_eq!(
        facts(call(json!({"order": "B", "how": "refused"})).await.unwrap()),
        ("failed", false, false, false)
    );
    assert_eq!(facts(call(json!({"order": "B"})).await.unwrap()), ("refused", false, false, false));
    assert_eq!(facts(call(json!({"which": "?"})).await.unwrap()), ("failed", false, false, false));
    assert_eq!(
        facts(tools.dispatch(&run, "unknown", json!({})).await.unwrap()),
        ("failed", false, false, false)
    );
    assert!(
        ledger
            .effect("conversation", "tag")
            .summary("a colleague")
            .execute(|fx| provider.ok(fx))
            .await
            .unwrap()
            .is_done()
    );
    let changed = call(json!({"order": "C"})).await.unwrap();
    assert_eq!(changed.conflicts.as_ref().unwrap()[0].summary.as_deref(), Some("a colleague"));
    assert_eq!(facts(changed), ("refused", false, false, true));
    ledger.run("conversation").begin().await.unwrap();
    assert_eq!(facts(call(json!({"order": "D"})).await.unwrap()), ("refused", false, true, false));
}

#[tokio::test]
async fn a_model_may_ask_what_was_done() {
    let (ledger, provider) = (ledger(), Provider::default());
    let tools = toolbox(&provider);
    let run = ledger.run("conversation").begin().await.unwrap();
    assert!(tools.dispatch(&run, "refund", json!({"order": "A"})).await.unwrap().ok);
    let ask = |asked: Value| tools.dispatch(&run, Toolbox::CHECK, asked);
    let known = ask(json!({"tool": "refund", "arguments": {"order": "A"}})).await.unwrap().output.unwrap();
    assert_eq!(known, json!({"status": "committed", "done": true, "summary": "refund of \"A\""}));
    let unknown = ask(json!({"tool": "refund", "arguments": {"order": "B"}})).await.unwrap().output.unwrap();
    assert_eq!(unknown, json!({"status": "none", "done": false, "summary": null}));
    let all = ask(json!({"tool": "refund"})).await.unwrap().output.unwrap();
    assert_eq!((all[0]["status"].as_str(), all.as_array().unwrap().len()), (Some("committed"), 1));
    assert!(all[0]["at"].as_str().unwrap().starts_with("2026-01-01T00:00:0"));
    assert!(!ask(json!({"tool": "mail"})).await.unwrap().ok);
}

#[tokio::test]
async fn tools_and_answers_are_what_each_api_takes() {
    let (ledger, provider) = (ledger(), Provider::default());
    let tools = toolbox(&provider);
    let [refund, check] = &tools.specs()[..] else { panic!() };
    assert_eq!(check.parameters["properties"]["tool"]["enum"], json!(["refund"]));
    assert_eq!(refund.openai_chat()["function"]["name"], "refund");
    assert_eq!(refund.openai_responses()["parameters"], refund.parameters);
    assert_eq!(refund.anthropic()["input_schema"], refund.parameters);
    let run = ledger.run("conversation").begin().await.unwrap();
    let lost = tools.dispatch(&run, "refund", json!({"order": "A", "how": "lost"})).await.unwrap();
    let chat = lost.openai_chat("call 1");
    assert_eq!((&chat["role"], &chat["tool_call_id"]), (&json!("tool"), &json!("call 1")));
    let content: Value = serde_json::from_str(chat["content"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&content["ok"], &content["status"], content.get("output")),
        (&json!(false), &json!("ambiguous"), None)
    );
    let responses = lost.openai_responses("call 2");
    assert_eq!(
        (&responses["type"], &responses["call_id"]),
        (&json!("function_call_output"), &json!("call 2"))
    );
    let anthropic = lost.anthropic("call 3");
    assert_eq!((&anthropic["tool_use_id"], &anthropic["is_error"]), (&json!("call 3"), &json!(true)));
}
