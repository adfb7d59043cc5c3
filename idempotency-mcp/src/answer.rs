//! What a model is told of a call that came to no result of its own.

use idempotency_agent::tools::ToolOutcome;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::json;

use crate::meta::OUTCOME;

/// What `outcome` means to a model, as a result.
pub(crate) fn told(outcome: &ToolOutcome) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(outcome.message.clone())]);
    mark(&mut result, outcome);
    result
}

/// Nothing was done, because of `why`.
pub(crate) fn refused(why: &str) -> CallToolResult {
    told(&ToolOutcome::refused_call(why))
}

/// It was done before, and what it came to cannot be answered again.
pub(crate) fn done_but_not_kept() -> CallToolResult {
    told(&ToolOutcome::done_without_its_result())
}

/// A tool's own error, with what it means for another call after it.
pub(crate) fn explained(mut own: CallToolResult, outcome: &ToolOutcome) -> CallToolResult {
    own.content.push(ContentBlock::text(outcome.message.clone()));
    own.is_error = Some(true);
    mark(&mut own, outcome);
    own
}

fn mark(result: &mut CallToolResult, outcome: &ToolOutcome) {
    let mut facts = json!({"status": outcome.status, "retryable": outcome.retryable});
    if let Some(conflicts) = &outcome.conflicts {
        facts["conflicts"] = json!(conflicts);
    }
    result.meta.get_or_insert_with(MetaObject::default).insert(OUTCOME.to_owned(), facts);
}
