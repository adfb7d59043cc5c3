//! Tools that a model may call as often as it likes: each call comes to one effect, and the model is told what became of it.
//!
//! A [`Toolbox`] holds guarded tools, has a run call them, and describes them and their answers as the APIs of models take
//! them: `OpenAI`'s Chat Completions and Responses, and Anthropic's Messages. It calls no model.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use idempotency_core::{LedgerStore, clock::Timestamp};
use serde_json::{Value, json};

use crate::{
    ConflictMode, EffectContext, EffectError, EffectKey, Intent, LedgerError, Run, instant, ledger::Status,
};

mod outcome;
mod spec;

pub use outcome::{SeenConflict, ToolOutcome};
pub use spec::ToolSpec;

type Doing = Pin<Box<dyn Future<Output = Result<Value, EffectError>> + Send>>;
type Effect = Arc<dyn Fn(Value, EffectContext) -> Doing + Send + Sync>;
type Identity = Arc<dyn Fn(&Value) -> Option<Value> + Send + Sync>;
type Summary = Arc<dyn Fn(&Value) -> String + Send + Sync>;

/// A tool whose calls are effects.
#[derive(Clone)]
pub struct GuardedTool {
    spec: ToolSpec,
    intent: String,
    identity: Identity,
    summary: Option<Summary>,
    conflict: ConflictMode,
    effect: Effect,
}

impl GuardedTool {
    /// A tool whose calls are told apart by what `identity` reads off their arguments: the order, the recipient. Where it
    /// reads nothing, the call is refused. The tool's name is its intent.
    pub fn new<I, F, Fut>(spec: ToolSpec, identity: I, effect: F) -> Self
    where
        I: Fn(&Value) -> Option<Value> + Send + Sync + 'static,
        F: Fn(Value, EffectContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, EffectError>> + Send + 'static,
    {
        Self {
            intent: spec.name.clone(),
            spec,
            identity: Arc::new(identity),
            summary: None,
            conflict: ConflictMode::Any,
            effect: Arc::new(move |arguments, context| Box::pin(effect(arguments, context))),
        }
    }

    /// Has another intent than the tool's name.
    #[must_use]
    pub fn intent(self, intent: impl Into<String>) -> Self {
        Self { intent: intent.into(), ..self }
    }

    /// Says in words what a call does, for others who meet it.
    #[must_use]
    pub fn summary(self, summary: impl Fn(&Value) -> String + Send + Sync + 'static) -> Self {
        Self { summary: Some(Arc::new(summary)), ..self }
    }

    /// Which effects of others stand in the way of a call: any, unless set.
    #[must_use]
    pub fn conflict(self, conflict: ConflictMode) -> Self {
        Self { conflict, ..self }
    }

    async fn call<S: LedgerStore>(&self, run: &Run<S>, arguments: Value) -> Result<ToolOutcome, LedgerError> {
        let Some(identity) = (self.identity)(&arguments) else {
            return Ok(ToolOutcome::refused_call("the arguments do not say which one is meant"));
        };
        let mut ask = run.effect(self.intent.clone()).identity(&identity).conflict(self.conflict);
        if let Some(summary) = &self.summary {
            ask = ask.summary(summary(&arguments));
        }
        let effect = Arc::clone(&self.effect);
        match ask.execute(move |context| effect(arguments, context)).await {
            Ok(outcome) => Ok(ToolOutcome::of(&outcome)),
            Err(LedgerError::StoredResult(_) | LedgerError::ResultNotKept { .. }) => {
                Ok(ToolOutcome::done_without_its_result())
            }
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for GuardedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedTool")
            .field("spec", &self.spec)
            .field("intent", &self.intent)
            .finish_non_exhaustive()
    }
}

/// The tools of an agent.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    tools: BTreeMap<String, GuardedTool>,
    check: Option<String>,
}

impl Toolbox {
    /// The name of the tool that tells what was done, unless another is given.
    pub const CHECK: &str = "check_already_done";

    /// An empty toolbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, in the place of one of its name.
    #[must_use]
    pub fn tool(mut self, tool: GuardedTool) -> Self {
        self.tools.insert(tool.spec.name.clone(), tool);
        self
    }

    /// Adds a tool by which a model may ask what was done before.
    #[must_use]
    pub fn check_tool(mut self, name: impl Into<String>) -> Self {
        self.check = Some(name.into());
        self
    }

    /// What a model is told of the tools.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let check = self.check.as_ref().map(|name| {
            let names: Vec<&String> = self.tools.keys().collect();
            ToolSpec::new(
                name.clone(),
                "Tells whether something was done already. Call it before doing it again.",
                json!({
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "enum": names, "description": "the tool that would do it"},
                        "arguments": {"type": "object", "description": "its arguments; without them, all that was done is listed"},
                    },
                    "required": ["tool"],
                    "additionalProperties": false,
                }),
            )
        });
        self.tools.values().map(|tool| tool.spec.clone()).chain(check).collect()
    }

    /// Does what a model asks for, once.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger fails.
    pub async fn dispatch<S: LedgerStore>(
        &self,
        run: &Run<S>,
        name: &str,
        arguments: Value,
    ) -> Result<ToolOutcome, LedgerError> {
        match self.tools.get(name) {
            Some(tool) => tool.call(run, arguments).await,
            None if self.check.as_deref() == Some(name) => self.check(run, &arguments).await,
            None => Ok(ToolOutcome::refused_call("there is no tool of this name")),
        }
    }

    async fn check<S: LedgerStore>(&self, run: &Run<S>, asked: &Value) -> Result<ToolOutcome, LedgerError> {
        let Some(tool) = asked["tool"].as_str().and_then(|name| self.tools.get(name)) else {
            return Ok(ToolOutcome::refused_call("there is no tool of this name"));
        };
        if let Some(arguments) = asked.get("arguments").filter(|arguments| arguments.is_object()) {
            let Some(identity) = (tool.identity)(arguments) else {
                return Ok(ToolOutcome::refused_call("the arguments do not say which one is meant"));
            };
            let key = EffectKey::identified(&Intent::new(tool.intent.clone())?, &identity)?;
            let known = run.check(&key).await?;
            return Ok(ToolOutcome::told(json!({
                "status": known.status.map_or("none", Status::name),
                "done": known.is_done(),
                "summary": known.entry.and_then(|entry| entry.summary),
            })));
        }
        let all = run.ledger().history(run.scope()).await?;
        let of_tool = all.into_iter().filter(|(effect, _)| effect.intent == tool.intent);
        let list = of_tool.map(|(effect, status)| {
            let at = effect.settled_at.unwrap_or(effect.claimed_at);
            let at = instant(Timestamp::from_micros(at.as_u64().saturating_mul(1_000)));
            json!({"status": status.name(), "summary": effect.summary, "at": at})
        });
        Ok(ToolOutcome::told(list.collect()))
    }
}
