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
    /// Nothing: it happened, and what it came to has no form that can be read back.
    Nothing,
}

impl Done {
    pub(crate) fn keeping(response: CallToolResponse) -> Self {
        let kept = match &response {
            CallToolResponse::Complete(result) => {
                serde_json::to_string(result).map(|text| Kept::Complete { text })
            }
            CallToolResponse::Task(task) => serde_json::to_string(task).map(|text| Kept::Task { text }),
            // Who keeps a response has looked at its kind before.
            _ => Ok(Kept::Nothing),
        };
        Self { kept: kept.unwrap_or(Kept::Nothing), fresh: Some(response) }
    }

    /// The answer once more, marked as such, if it can be read back.
    pub(crate) fn again(self) -> Option<CallToolResponse> {
        match self.kept {
            Kept::Complete { text } => serde_json::from_str(&text).map(|mut result: CallToolResult| {
                mark(&mut result.meta);
                CallToolResponse::from(result)
            }),
            Kept::Task { text } => serde_json::from_str(&text).map(|mut task: CreateTaskResult| {
                mark(&mut task.meta);
                CallToolResponse::from(task)
            }),
            Kept::Nothing => return None,
        }
        .ok()
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
        let kept = serde_json::to_value(Done::keeping(result.into())).unwrap();
        match serde_json::from_value::<Done>(kept).unwrap().again() {
            Some(CallToolResponse::Complete(result)) => result,
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
}
