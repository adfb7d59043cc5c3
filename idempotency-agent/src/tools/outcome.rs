//! What a model is told of a call.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{Outcome, Refusal, ledger::Conflict};

/// How much of an error a model is told, in characters.
const ERROR: usize = 300;

/// What became of a tool's call, for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolOutcome {
    /// Whether it is done.
    pub ok: bool,
    /// The outcome's name.
    pub status: &'static str,
    /// Whether this run may do nothing more: the loop should end.
    pub terminal: bool,
    /// Whether calling again, after reading again, may do it.
    pub retryable: bool,
    /// What to make of it, in words.
    pub message: String,
    /// What it came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What others did meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<SeenConflict>>,
}

/// Something others did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenConflict {
    /// What kind of effect.
    pub intent: String,
    /// Where it is.
    pub status: &'static str,
    /// What it did, in words.
    pub summary: Option<String>,
}

impl ToolOutcome {
    /// What `outcome` means to a model.
    pub fn of(outcome: &Outcome<Value>) -> Self {
        match outcome {
            Outcome::Executed { value, .. } => Self::done("executed", "Done.", value.clone()),
            Outcome::Replayed(value) => Self::done(
                "replayed",
                "This was done before and was not repeated; here is what it came to.",
                value.clone(),
            ),
            Outcome::InFlight(_) => {
                Self::not_done("in_flight", "This is being done elsewhere right now. Do not repeat it.")
            }
            Outcome::Ambiguous { .. } => Self::not_done(
                "ambiguous",
                "Nobody knows whether this was done. Do not repeat it: say so, or hand it to a person.",
            ),
            Outcome::Failed { error, retryable: true } => {
                let message =
                    format!("This was not done ({}). It may be tried again.", short(&error.to_string()));
                Self { retryable: true, ..Self::not_done("failed", message) }
            }
            Outcome::Failed { error, retryable: false } => {
                let error = short(&error.to_string());
                Self::not_done(
                    "failed",
                    format!("This was not done ({error}), and is not tried again. Hand it to a person."),
                )
            }
            Outcome::Refused(refusal) => Self::refused(refusal),
        }
    }

    fn refused(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::ConversationChanged(conflicts) => {
                let message = format!(
                    "Others did {} thing(s) in this conversation since you read it. Read it again, decide again, and call \
                     again only if it is still needed.",
                    conflicts.total
                );
                let conflicts = conflicts.listed.iter().map(SeenConflict::of).collect();
                Self { retryable: true, conflicts: Some(conflicts), ..Self::not_done("refused", message) }
            }
            Refusal::Exhausted(_) => {
                Self::not_done("refused", "This failed as often as it may. Hand it to a person.")
            }
            Refusal::PayloadChanged(_) => Self::not_done(
                "refused",
                "This was asked for before with other arguments, and was not done again with these. If the first call is \
                 what you mean, repeat it as it was; if this is something else, it needs an identity of its own.",
            ),
            other => {
                let message = format!("Stop: this run may do nothing more ({}).", other.name());
                Self { terminal: true, ..Self::not_done("refused", message) }
            }
        }
    }

    /// An answer to a question.
    pub(super) fn told(output: Value) -> Self {
        Self::done("executed", "Here is what is known.", output)
    }

    /// A call that names no tool, or no thing to do.
    pub fn refused_call(why: &str) -> Self {
        Self::not_done("failed", format!("Nothing was done: {why}."))
    }

    /// An effect that is done, and of which nobody can say any more what it came to.
    pub fn done_without_its_result() -> Self {
        let message = "This was done before and was not repeated. What it came to was not kept: do not repeat it to find out.";
        Self::done("replayed", message, Value::Null)
    }

    fn done(status: &'static str, message: &str, value: Value) -> Self {
        let output = Some(value).filter(|value| !value.is_null());
        Self { ok: true, output, ..Self::not_done(status, message) }
    }

    fn not_done(status: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { ok: false, status, terminal: false, retryable: false, message, output: None, conflicts: None }
    }

    /// The answer to a call of `OpenAI`'s Chat Completions.
    pub fn openai_chat(&self, tool_call_id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": tool_call_id, "content": self.text()})
    }

    /// The answer to a call of `OpenAI`'s Responses.
    pub fn openai_responses(&self, call_id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": self.text()})
    }

    /// The answer to a call of Anthropic's Messages, as a block of content.
    pub fn anthropic(&self, tool_use_id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": self.text(), "is_error": !self.ok})
    }

    fn text(&self) -> String {
        json!(self).to_string()
    }
}

impl SeenConflict {
    fn of(conflict: &Conflict) -> Self {
        Self {
            intent: conflict.intent.clone(),
            status: conflict.status.name(),
            summary: conflict.summary.clone(),
        }
    }
}

fn short(error: &str) -> String {
    error.chars().take(ERROR).collect()
}
