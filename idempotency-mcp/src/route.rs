//! A guarded tool: from its call to an answer.

use std::{
    any::Any,
    fmt,
    future::ready,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use idempotency_agent::{
    Applied, EffectBuilder, EffectContext, EffectError, Ledger, LedgerError, Outcome, tools::ToolOutcome,
};
use idempotency_core::{Key, LedgerStore};
use rmcp::{
    ErrorData, RoleServer,
    handler::server::tool::{DynCallToolHandler, ToolCallContext},
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock},
    service::RequestContext,
};
use serde_json::{Value, json};

use crate::{
    Call, Guarded, OnToolError,
    answer::{done_but_not_kept, explained, refused, told},
    detaching::Detaching,
    kept::Done,
    tool::Naming,
};

type Response = Result<CallToolResponse, ErrorData>;
type Answering<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;
pub(crate) type ScopeOf = Arc<dyn Fn(&Call<'_>) -> Option<String> + Send + Sync>;

/// What all guarded tools of a router share.
pub(crate) struct Terms<L> {
    pub(crate) ledger: Ledger<L>,
    pub(crate) scope: ScopeOf,
    pub(crate) key_name: String,
    pub(crate) wait: Duration,
}

/// A guarded tool.
pub(crate) struct GuardedRoute<S, L> {
    pub(crate) terms: Arc<Terms<L>>,
    pub(crate) tool: Guarded,
    pub(crate) intent: String,
    pub(crate) own: Arc<DynCallToolHandler<S>>,
}

impl<S, L> GuardedRoute<S, L>
where
    S: Clone + Send + Sync + 'static,
    L: LedgerStore,
{
    /// Answers a call. Once it runs, it does so to its end, whether anybody waits for it or not.
    pub(crate) fn answer<'a>(self: &Arc<Self>, context: ToolCallContext<'a, S>) -> Answering<'a> {
        // Functions of the server's own read what a model wrote. Unanswered, a call that makes one panic would hang.
        let asked = catch_unwind(AssertUnwindSafe(|| self.ask(&Call::of(&context))));
        let ask = match asked {
            Ok(Ok(ask)) => ask,
            Ok(Err(why)) => return Box::pin(ready(Ok(refused(&why).into()))),
            Err(_) => return Box::pin(ready(Err(panicked("this call did nothing")))),
        };
        let (route, service) = (Arc::clone(self), context.service.clone());
        let (params, request) = taken_apart(context);
        Box::pin(Detaching::new(async move {
            let run = AssertUnwindSafe(route.run(ask, service, params, request)).catch_unwind();
            run.await.unwrap_or_else(|_| Err(panicked("nobody knows what became of this call")))
        }))
    }

    /// Whose call it is, and which, or why that is not known.
    fn ask(&self, call: &Call<'_>) -> Result<EffectBuilder<L>, String> {
        let terms = &self.terms;
        let identity = match &self.tool.naming {
            Naming::Key => json!({"key": key(call, &terms.key_name)?.as_str()}),
            Naming::Identity(identity) => {
                identity(call).ok_or("the arguments do not say which one is meant")?
            }
        };
        let scope = (terms.scope)(call).ok_or("the call does not say whose it is")?;
        let ask = terms.ledger.effect(scope, self.intent.clone()).identity(&identity);
        let mut ask = ask.payload(&self.tool.payload_of(call)).wait(terms.wait);
        if let Some(summary) = &self.tool.summary {
            ask = ask.summary(summary(call));
        }
        Ok(if self.tool.marks_point_of_no_return { ask.with_point_of_no_return() } else { ask })
    }

    async fn run(
        self: Arc<Self>,
        ask: EffectBuilder<L>,
        service: S,
        params: CallToolRequestParams,
        mut request: RequestContext<RoleServer>,
    ) -> Response {
        let route = Arc::clone(&self);
        let attempt = move |context: EffectContext| async move {
            if request.ct.is_cancelled() {
                return Err(wrong(Applied::No, Err(cancelled())));
            }
            request.extensions.insert(context);
            let call = ToolCallContext::new(&service, params, request);
            let own = AssertUnwindSafe(async { (route.own)(call).await });
            route.ending(own.catch_unwind().await)
        };
        match ask.execute(attempt).await {
            Ok(outcome) => told_of(outcome),
            Err(LedgerError::StoredResult(_) | LedgerError::ResultNotKept { .. }) => {
                Ok(done_but_not_kept().into())
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// What a tool's answer, or its panic, says about whether it did what it was called for.
    fn ending(&self, said: Result<Response, Box<dyn Any + Send>>) -> Result<Done, EffectError> {
        let response = match said {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(wrong(self.tool.protocol_error(&error), Err(error))),
            Err(_) => return Err(EffectError::unknown("the tool panicked")),
        };
        let applied = match &response {
            CallToolResponse::Complete(result) if result.is_error == Some(true) => {
                match self.tool.on_tool_error {
                    OnToolError::Applied => None,
                    OnToolError::NotApplied => Some(Applied::No),
                    OnToolError::Unknown => Some(Applied::Unknown),
                }
            }
            CallToolResponse::Complete(_) | CallToolResponse::Task(_) => None,
            // It asks before it does anything. With a point of no return, that point says whether it does.
            CallToolResponse::InputRequired(_) if !self.tool.marks_point_of_no_return => Some(Applied::No),
            _ => Some(Applied::Unknown),
        };
        match applied {
            None => Ok(Done::keeping(response)),
            Some(applied) => Err(wrong(applied, Ok(response))),
        }
    }
}

/// The client's key.
fn key(call: &Call<'_>, name: &str) -> Result<Key, String> {
    let wanted = "draw one for each thing to be done, and send it again with every retry of its call";
    let text = match call.meta().get(name) {
        None | Some(Value::Null) => {
            return Err(format!("the call has no idempotency key, `{name}` in `_meta`: {wanted}"));
        }
        Some(value) => {
            value.as_str().ok_or_else(|| format!("the idempotency key, `{name}` in `_meta`, is no text"))?
        }
    };
    Key::new(text).map_err(|error| format!("the idempotency key, `{name}` in `_meta`, is none: {error}"))
}

/// What of a call its tool's handler is made from.
fn taken_apart<S>(context: ToolCallContext<'_, S>) -> (CallToolRequestParams, RequestContext<RoleServer>) {
    let mut params = CallToolRequestParams::new(context.name);
    params.arguments = context.arguments;
    params.input_responses = context.input_responses;
    params.request_state = context.request_state;
    (params, context.request_context)
}

/// An answer that is not kept.
#[derive(Debug)]
struct ToolError(Response);

impl std::error::Error for ToolError {}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(CallToolResponse::Complete(result)) => {
                let texts = result.content.iter().filter_map(ContentBlock::as_text);
                let text = texts.map(|text| text.text.as_str()).next().unwrap_or("it does not say why");
                write!(f, "the tool failed: {text}")
            }
            Ok(CallToolResponse::InputRequired(_)) => f.write_str("the tool asks for more first"),
            Ok(_) => f.write_str("the tool gave an answer of an unknown kind"),
            Err(error) => write!(f, "the tool failed: {}", error.message),
        }
    }
}

fn wrong(applied: Applied, response: Response) -> EffectError {
    match applied {
        Applied::No => EffectError::not_applied(ToolError(response)),
        Applied::Unknown => EffectError::unknown(ToolError(response)),
    }
}

/// The tool's own answer, if that is what ended the attempt.
fn own(error: &EffectError) -> Option<Response> {
    error.source().downcast_ref::<ToolError>().map(|error| error.0.clone())
}

/// An attempt's outcome as the answer to its call.
fn told_of(outcome: Outcome<Done>) -> Response {
    let (outcome, own) = match outcome {
        Outcome::Executed { value: Done { fresh: Some(response), .. }, .. } => return Ok(response),
        Outcome::Executed { value, .. } | Outcome::Replayed(value) => {
            return Ok(value.again().unwrap_or_else(|| done_but_not_kept().into()));
        }
        Outcome::Ambiguous { entry, error } => {
            let own = error.as_ref().and_then(own);
            (Outcome::Ambiguous { entry, error }, own)
        }
        Outcome::Failed { error, retryable } => {
            let own = own(&error);
            (Outcome::Failed { error, retryable }, own)
        }
        Outcome::InFlight(entry) => (Outcome::InFlight(entry), None),
        Outcome::Refused(refusal) => (Outcome::Refused(refusal), None),
    };
    let meaning = ToolOutcome::of(&outcome);
    match own {
        // Nothing happened, and its own words say so best.
        Some(own) if meaning.retryable => own,
        Some(Ok(CallToolResponse::Complete(own))) => Ok(explained(own, &meaning).into()),
        Some(Err(error)) => {
            let own = CallToolResult::error(vec![ContentBlock::text(error.message)]);
            Ok(explained(own, &meaning).into())
        }
        // A question whose answer would be refused is not asked.
        Some(Ok(_)) | None => Ok(told(&meaning).into()),
    }
}

/// Its client gave the call up while it waited for another one.
fn cancelled() -> ErrorData {
    ErrorData::internal_error("the call was cancelled before it began, and did nothing", None)
}

/// The process's own hook has told of the panic.
fn panicked(what_of_it: &str) -> ErrorData {
    ErrorData::internal_error(format!("a function of the server panicked: {what_of_it}"), None)
}

/// The ledger failed before anything was done.
fn failed(error: &LedgerError) -> ErrorData {
    tracing::error!(error = error as &dyn std::error::Error, "the ledger of a tool's calls failed");
    ErrorData::internal_error("the record of what was done cannot be used: this call did nothing", None)
}
