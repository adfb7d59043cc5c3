//! What is kept of a tool's answer, and how it is answered again.

use rmcp::model::{CallToolResponse, CallToolResult, CreateTaskResult, MetaObject};
use serde::{Deserialize, Serialize};

use crate::meta::REPLAYED;

/// What a tool answered, where that ends the call, and what of it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    #[serde(flatten)]
    kept: Kept,
    /// The answer itself, for the call that ran.
    #[serde(skip)]
    pub(crate) fresh: Option<CallToolResponse>,
}

/// What is kept of an answer: the text of its JSON. As text it is the same in every store, also in those that sort members
/// and write numbers in their own way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kept {
    /// A result.
    Complete { text: String },
    /// The handle of a task that works on.
    Task { text: String },
    /// Nothing: it happened, and its result cannot be answered again.
    Dropped { why: Dropped },
}

/// Why nothing is kept of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dropped {
    /// It is larger than what is kept.
    TooLarge,
    /// It has no form in JSON, or its form cannot be read back.
    Unreadable,
}

/// An answer that is given again.
#[derive(Debug)]
pub(crate) enum Again {
    Response(CallToolResponse),
    Nothing(Dropped),
}

impl Done {
    /// Of `response`, at most `most` bytes are kept.
    pub(crate) fn keeping(response: CallToolResponse, most: usize) -> Self {
        let text = match &response {
            CallToolResponse::Complete(result) => {
                serde_json::to_string(result).map(|text| Kept::Complete { text })
            }
            CallToolResponse::Task(task) => serde_json::to_string(task).map(|text| Kept::Task { text }),
            // Who keeps a response has looked at its kind before.
            _ => Ok(Kept::Dropped { why: Dropped::Unreadable }),
        };
        let kept = match text {
            Ok(Kept::Complete { text } | Kept::Task { text }) if text.len() > most => {
                Kept::Dropped { why: Dropped::TooLarge }
            }
            Ok(kept) => kept,
            Err(_) => Kept::Dropped { why: Dropped::Unreadable },
        };
        Self { kept, fresh: Some(response) }
    }

    /// The answer once more, marked as such.
    pub(crate) fn again(self) -> Again {
        let read = match self.kept {
            Kept::Complete { text } => serde_json::from_str(&text).map(|mut result: CallToolResult| {
                mark(&mut result.meta);
                CallToolResponse::from(result)
            }),
            Kept::Task { text } => serde_json::from_str(&text).map(|mut task: CreateTaskResult| {
                mark(&mut task.meta);
                CallToolResponse::from(task)
            }),
            Kept::Dropped { why } => return Again::Nothing(why),
        };
        read.map_or(Again::Nothing(Dropped::Unreadable), Again::Response)
    }
}

fn mark(meta: &mut Option<MetaObject>) {
    meta.get_or_insert_default().insert(REPLAYED.to_owned(), true.into());
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;
    use serde_json::{Value, json};

    use super::*;

    /// What `result` is when it is answered again, by way of a store that keeps JSON.
    fn again(result: CallToolResult) -> CallToolResult {
        let kept = serde_json::to_value(Done::keeping(result.into(), 10_000)).unwrap();
        match serde_json::from_value::<Done>(kept).unwrap().again() {
            Again::Response(CallToolResponse::Complete(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_is_given_again_member_by_member() {
        let mut full = CallToolResult::structured(json!({"nul": "\0", "of": [1.0, 1, -0.0, 1e300, null]}));
        full.is_error = Some(true);
        full.content.push(ContentBlock::image("aGk=", "image/png"));
        full.meta = Some(MetaObject(json!({"com.example/a": {"b": 1}}).as_object().unwrap().clone()));
        let mut bare = CallToolResult::default();
        (bare.is_error, bare.result_type) = (None, None);
        let mut null = CallToolResult::success(Vec::new());
        null.structured_content = Some(Value::Null);
        for result in [full, bare, null, CallToolResult::success(vec![ContentBlock::text("a")])] {
            let mut expected = result.clone();
            mark(&mut expected.meta);
            let [again, expected] = [again(result), expected].map(|it| serde_json::to_string(&it).unwrap());
            assert_eq!(again, expected);
        }
    }

    #[test]
    fn what_is_too_large_is_known_to_have_happened() {
        let large = CallToolResult::success(vec![ContentBlock::text("x".repeat(1_000))]);
        assert!(matches!(
            Done::keeping(large.clone().into(), 1_000).again(),
            Again::Nothing(Dropped::TooLarge)
        ));
        assert!(matches!(Done::keeping(large.into(), 2_000).again(), Again::Response(_)));
    }
}
