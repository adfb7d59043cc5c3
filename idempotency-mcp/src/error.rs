//! Why a router cannot be guarded.

use idempotency_agent::NameError;

/// Why a router cannot be guarded. It is known at start-up, before any call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// Tools that write, and nothing that tells one call of theirs from another.
    #[error(
        "nothing tells the calls of these tools apart, so that a retry would do again what they do: {}. Give each \
         `Guarded::by_key()` or `Guarded::by(..)`; annotate it as read-only if it changes nothing; or say `unguarded`",
        tools.join(", ")
    )]
    Unidentified {
        /// Their names.
        tools: Vec<String>,
    },
    /// Nothing says whose keys and results they are.
    #[error(
        "nothing says whose keys and results they are: choose one `scope` for all callers, or `scope_by` caller"
    )]
    NoScope,
    /// A scope that is none.
    #[error("the scope is none")]
    Scope(#[source] NameError),
    /// A tool that the router has not.
    #[error("the router has no tool `{tool}`")]
    NoSuchTool {
        /// Its name.
        tool: String,
    },
    /// A tool that is to be guarded and says that it changes nothing.
    #[error(
        "the tool `{tool}` is annotated as read-only, so its calls are not guarded: drop the one or the other"
    )]
    ReadOnly {
        /// Its name.
        tool: String,
    },
    /// A tool whose calls have no intent of a name that a ledger takes.
    #[error("the tool `{tool}` needs an intent: give it one by `Guarded::intent`")]
    Intent {
        /// Its name.
        tool: String,
        /// What a ledger takes.
        source: NameError,
    },
    /// Two tools of one intent: a call of one would be answered with the other's result.
    #[error(
        "the tools `{}` have one intent, `{intent}`, by which a call of one would be taken for a call of the other: give \
         each its own",
        tools.join("` and `")
    )]
    SharedIntent {
        /// The intent.
        intent: String,
        /// Their names.
        tools: [String; 2],
    },
    /// A name in `_meta` that is none, or that the protocol keeps for itself.
    #[error("`{name}` is no name in `_meta`, or one that the protocol keeps for itself")]
    KeyName {
        /// The name.
        name: String,
    },
}
