//! How one tool is guarded.

use std::{fmt, sync::Arc};

use idempotency_agent::Applied;
use rmcp::{ErrorData, model::ErrorCode};
use serde_json::Value;

use crate::Call;

type OfCall<T> = Arc<dyn Fn(&Call<'_>) -> T + Send + Sync>;
type OfError = Arc<dyn Fn(&ErrorData) -> Applied + Send + Sync>;

/// How the calls of one tool are guarded: what tells one from another, and what its errors say.
#[derive(Clone)]
#[must_use]
pub struct Guarded {
    pub(crate) naming: Naming,
    pub(crate) intent: Option<String>,
    pub(crate) summary: Option<OfCall<String>>,
    pub(crate) payload: Option<OfCall<Value>>,
    pub(crate) on_tool_error: OnToolError,
    on_protocol_error: Option<OfError>,
    pub(crate) marks_point_of_no_return: bool,
}

/// What tells one call from another.
#[derive(Clone)]
pub(crate) enum Naming {
    Key,
    Identity(OfCall<Option<Value>>),
}

/// What a result with `isError` says about whether the tool did what it was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnToolError {
    /// Nothing: the mail may be sent, and only the answer was lost. The call is in doubt, and no copy of it runs until
    /// somebody finds out.
    #[default]
    Unknown,
    /// It did not. The next copy of the call runs.
    NotApplied,
    /// It did, or never will: the error is the answer, and copies of the call get it as well.
    Applied,
}

impl Guarded {
    /// Calls are told apart by the key that the client sends in `_meta`, and sends again with every retry. A call without
    /// one is refused.
    pub fn by_key() -> Self {
        Self::named(Naming::Key)
    }

    /// Calls are told apart by what `identity` reads off them: the order, the recipient. A call off which it reads nothing
    /// is refused. The client's own key does not count beside it: a client that draws a new one for each try would repeat
    /// what the business knows to be one thing.
    pub fn by(identity: impl Fn(&Call<'_>) -> Option<Value> + Send + Sync + 'static) -> Self {
        Self::named(Naming::Identity(Arc::new(identity)))
    }

    fn named(naming: Naming) -> Self {
        Self {
            naming,
            intent: None,
            summary: None,
            payload: None,
            on_tool_error: OnToolError::Unknown,
            on_protocol_error: None,
            marks_point_of_no_return: false,
        }
    }

    /// Records its calls under another intent than the tool's name.
    pub fn intent(self, intent: impl Into<String>) -> Self {
        Self { intent: Some(intent.into()), ..self }
    }

    /// Says in words what a call does, for others who meet it in the ledger. Nothing unless set.
    pub fn summary(self, summary: impl Fn(&Call<'_>) -> String + Send + Sync + 'static) -> Self {
        Self { summary: Some(Arc::new(summary)), ..self }
    }

    /// Which of its arguments a copy has to repeat: all of them, unless set. A call with the key or the identity of another
    /// and other such arguments is refused. For a tool that takes free text which a model words anew: leave that out here.
    pub fn payload(self, payload: impl Fn(&Call<'_>) -> Value + Send + Sync + 'static) -> Self {
        Self { payload: Some(Arc::new(payload)), ..self }
    }

    /// What a result with `isError` says: nothing, unless set.
    pub fn on_tool_error(self, on_tool_error: OnToolError) -> Self {
        Self { on_tool_error, ..self }
    }

    /// What an error of the protocol says, which a tool answers instead of a result. Unless set, one that the *request* is
    /// at fault (parse error, invalid request, unknown method, invalid parameters) says that nothing happened, and any
    /// other says nothing. With [`with_point_of_no_return`](Self::with_point_of_no_return) only that point counts.
    pub fn on_protocol_error(self, says: impl Fn(&ErrorData) -> Applied + Send + Sync + 'static) -> Self {
        Self { on_protocol_error: Some(Arc::new(says)), ..self }
    }

    /// Has the tool mark the point from which on it may have happened, by
    /// [`EffectContext::point_of_no_return`](crate::EffectContext::point_of_no_return). What ends before it, whichever way,
    /// is known not to have happened, and a copy of the call runs.
    pub fn with_point_of_no_return(self) -> Self {
        Self { marks_point_of_no_return: true, ..self }
    }

    pub(crate) fn protocol_error(&self, error: &ErrorData) -> Applied {
        const OF_THE_REQUEST: [ErrorCode; 4] = [
            ErrorCode::PARSE_ERROR,
            ErrorCode::INVALID_REQUEST,
            ErrorCode::METHOD_NOT_FOUND,
            ErrorCode::INVALID_PARAMS,
        ];
        match &self.on_protocol_error {
            Some(says) => says(error),
            None if OF_THE_REQUEST.contains(&error.code) && !self.marks_point_of_no_return => Applied::No,
            None => Applied::Unknown,
        }
    }

    pub(crate) fn payload_of(&self, call: &Call<'_>) -> Value {
        self.payload.as_ref().map_or_else(|| call.arguments(), |payload| payload(call))
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let naming = match self.naming {
            Naming::Key => "by key",
            Naming::Identity(_) => "by identity",
        };
        f.debug_struct("Guarded")
            .field("naming", &naming)
            .field("intent", &self.intent)
            .field("on_tool_error", &self.on_tool_error)
            .field("marks_point_of_no_return", &self.marks_point_of_no_return)
            .finish_non_exhaustive()
    }
}
