//! Answers that are no result yet: questions and tasks.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CreateTaskResult, InputResponses, Task, TaskStatus,
};
use serde_json::json;

use crate::scene::{Bank, Client, How, answer, meta, refund, result, status, text};

/// A later round of the refund under `key`: the same call with the answer to the question.
fn later(key: &str, state: &str) -> CallToolRequestParams {
    let responses = InputResponses::from([("sure".to_owned(), json!({"action": "accept"}))]);
    let mut params = refund(None, "A").with_input_responses(responses).with_request_state(state);
    params.meta = Some(meta(json!({"idempotency-key": key, "progressToken": state})));
    params
}

async fn asked(client: &Client, params: CallToolRequestParams) -> String {
    match answer(client, params).await.unwrap() {
        CallToolResponse::InputRequired(question) => question.request_state.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_is_not_kept_and_its_answer_belongs_to_the_same_call() {
    let bank = Bank::by_key();
    bank.provider.will([How::Ask("first"), How::Ask("once more")]);
    let client = bank.client().await;
    assert_eq!(asked(&client, refund(Some("k1"), "A")).await, "first");
    assert_eq!(asked(&client, refund(Some("k1"), "A")).await, "once more");
    let done = result(&client, later("k1", "once more")).await;
    assert_eq!((status(&done).as_str(), bank.provider.posts()), ("executed", 1));
    let order = json!({"order": "A"});
    let answers = json!({"sure": {"action": "accept"}});
    let heard =
        [json!([order, null, null]), json!([order, null, null]), json!([order, "once more", answers])];
    assert_eq!(bank.provider.heard(), heard);
    // Whichever round is repeated after that gets the result.
    for copy in [later("k1", "once more"), later("k1", "first"), refund(Some("k1"), "A")] {
        let again = result(&client, copy).await;
        assert_eq!(
            (status(&again).as_str(), again.structured_content),
            ("replayed", Some(json!({"refund": 1})))
        );
    }
    assert_eq!(bank.provider.posts(), 1);
}

#[tokio::test]
async fn a_question_whose_answer_would_be_refused_is_not_asked() {
    let bank = Bank::by_key();
    bank.provider.will([How::Ask("1"), How::Ask("2"), How::Ask("3")]);
    let client = bank.client().await;
    assert_eq!(asked(&client, refund(Some("k1"), "A")).await, "1");
    assert_eq!(asked(&client, later("k1", "1")).await, "2");
    let last = result(&client, later("k1", "2")).await;
    assert_eq!(status(&last), "failed");
    assert!(text(&last).contains("is not tried again"), "{}", text(&last));
    assert_eq!(bank.provider.posts(), 0);
}

#[tokio::test]
async fn a_task_is_begun_once_and_its_handle_given_again() {
    let bank = Bank::by_key();
    let task = Task::new("task 1", TaskStatus::Working, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
    bank.provider.will([How::Answer(CreateTaskResult::new(task.clone()).into())]);
    let client = bank.client().await;
    for replayed in [false, true] {
        let CallToolResponse::Task(handle) = answer(&client, refund(Some("k1"), "A")).await.unwrap() else {
            panic!("no task")
        };
        assert_eq!((handle.task, handle.meta.is_some()), (task.clone(), replayed));
    }
    assert_eq!(bank.provider.posts(), 1);
}
