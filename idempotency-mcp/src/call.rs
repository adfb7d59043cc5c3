//! A call as a server's own functions see it.

use std::fmt;

use rmcp::{
    RoleServer,
    handler::server::tool::ToolCallContext,
    model::{Extensions, JsonObject, RequestMetaObject},
    service::RequestContext,
};
use serde_json::Value;

/// A call of a tool, before it runs.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    tool: &'a str,
    arguments: Option<&'a JsonObject>,
    context: &'a RequestContext<RoleServer>,
}

impl<'a> Call<'a> {
    pub(crate) fn of<S>(context: &'a ToolCallContext<'_, S>) -> Self {
        Self {
            tool: context.name(),
            arguments: context.arguments.as_ref(),
            context: &context.request_context,
        }
    }

    /// The tool's name.
    pub const fn tool(&self) -> &'a str {
        self.tool
    }

    /// The argument of this name; none where it is absent or null.
    pub fn argument(&self, name: &str) -> Option<&'a Value> {
        self.arguments?.get(name).filter(|value| !value.is_null())
    }

    /// All arguments, as one object: an empty one where the call has none.
    pub fn arguments(&self) -> Value {
        Value::Object(self.arguments.cloned().unwrap_or_default())
    }

    /// What the client says beside the arguments.
    pub const fn meta(&self) -> &'a RequestMetaObject {
        &self.context.meta
    }

    /// What the transport knows of the call: over HTTP, the parts of its request.
    pub const fn extensions(&self) -> &'a Extensions {
        &self.context.extensions
    }

    /// Everything else: the peer, the protocol's version, who the client says it is.
    pub const fn context(&self) -> &'a RequestContext<RoleServer> {
        self.context
    }
}

/// What a client sent is not for logs.
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("tool", &self.tool).finish_non_exhaustive()
    }
}
