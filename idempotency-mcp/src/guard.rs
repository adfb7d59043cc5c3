//! Guarding a router's tools.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use idempotency_agent::{Intent, Ledger, LedgerScope};
use idempotency_core::LedgerStore;
use rmcp::{
    handler::server::router::tool::{ToolRoute, ToolRouter},
    model::{MetaObject, Tool},
};

use crate::{
    Call, GuardError, Guarded,
    meta::{self, KEY},
    route::{GuardedRoute, ScopeOf, Terms},
    tool::Naming,
};

/// Begins to guard the tools of `router`: each call of one that writes comes to one effect in `ledger`.
///
/// Tools annotated as read-only are left as they are. Every other tool needs a word on what tells its calls apart.
pub const fn guard<S, L>(router: ToolRouter<S>, ledger: Ledger<L>) -> Guard<S, L> {
    Guard {
        router,
        ledger,
        scope: None,
        key_name: Cow::Borrowed(KEY),
        tools: BTreeMap::new(),
        others: None,
        wait: Duration::ZERO,
    }
}

/// A router whose tools are to be guarded, and how. Nothing is guarded before [`build`](Self::build).
#[must_use]
pub struct Guard<S, L> {
    router: ToolRouter<S>,
    ledger: Ledger<L>,
    scope: Option<Whose>,
    key_name: Cow<'static, str>,
    tools: BTreeMap<String, Choice>,
    others: Option<Guarded>,
    wait: Duration,
}

#[derive(Clone)]
enum Choice {
    Guarded(Guarded),
    Unguarded,
}

enum Whose {
    One(String),
    By(ScopeOf),
}

impl<S, L> Guard<S, L> {
    /// All callers are one: they share keys, and one is answered what another's call came to. For a server with one user, as
    /// over standard input and output.
    pub fn scope(self, scope: impl Into<String>) -> Self {
        Self { scope: Some(Whose::One(scope.into())), ..self }
    }

    /// Whose call it is: the user or tenant that the transport has authenticated, never what a client merely says, and not
    /// the session, which a client that comes back has lost. A call of nobody is refused.
    pub fn scope_by(self, scope: impl Fn(&Call<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { scope: Some(Whose::By(Arc::new(scope))), ..self }
    }

    /// Under which name a call's key stands in `_meta` of its request: [`KEY`] unless set.
    pub fn key_name(self, name: impl Into<Cow<'static, str>>) -> Self {
        Self { key_name: name.into(), ..self }
    }

    /// How the calls of `tool` are guarded.
    pub fn tool(mut self, tool: impl Into<String>, guarded: Guarded) -> Self {
        self.tools.insert(tool.into(), Choice::Guarded(guarded));
        self
    }

    /// How the calls of all tools are guarded that write and for which nothing else is said.
    pub fn every_other(self, guarded: Guarded) -> Self {
        Self { others: Some(guarded), ..self }
    }

    /// Leaves `tool` as it is: each of its calls runs.
    pub fn unguarded(mut self, tool: impl Into<String>) -> Self {
        self.tools.insert(tool.into(), Choice::Unguarded);
        self
    }

    /// How long a copy of a call waits for the one that runs, to be answered with its result. Not at all unless set: it is
    /// told that the call is being done.
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }
}

impl<S, L> Guard<S, L>
where
    S: Clone + Send + Sync + 'static,
    L: LedgerStore,
{
    /// The router with its tools guarded. A tool that is added to it later is not.
    ///
    /// # Errors
    /// [`GuardError`] when something that writes cannot be guarded, or what was chosen does not fit the router.
    pub fn build(self) -> Result<ToolRouter<S>, GuardError> {
        let Self { mut router, ledger, scope, key_name, mut tools, others, wait } = self;
        if !meta::is_free(&key_name) {
            return Err(GuardError::KeyName { name: key_name.into_owned() });
        }
        let scope = match scope.ok_or(GuardError::NoScope)? {
            Whose::By(scope) => scope,
            Whose::One(name) => {
                LedgerScope::new(name.clone()).map_err(GuardError::Scope)?;
                Arc::new(move |_: &Call<'_>| Some(name.clone()))
            }
        };
        let terms = Arc::new(Terms { ledger, scope, key_name: key_name.into_owned(), wait });
        let (mut unidentified, mut intents) = (Vec::new(), HashMap::new());
        for (name, route) in &mut router.map {
            match (tools.remove(&**name), is_read_only(&route.attr), &others) {
                (Some(Choice::Unguarded), _, _) | (None, true, _) => {}
                (Some(Choice::Guarded(_)), true, _) => {
                    return Err(GuardError::ReadOnly { tool: name.to_string() });
                }
                (Some(Choice::Guarded(tool)), false, _) => guard_one(route, tool, &terms, &mut intents)?,
                (None, false, Some(tool)) => {
                    guard_one(route, tool.clone(), &terms, &mut intents)?;
                }
                (None, false, None) => unidentified.push(name.to_string()),
            }
        }
        if !unidentified.is_empty() {
            unidentified.sort();
            return Err(GuardError::Unidentified { tools: unidentified });
        }
        match tools.pop_first() {
            Some((tool, _)) => Err(GuardError::NoSuchTool { tool }),
            None => Ok(router),
        }
    }
}

/// Whether a tool says that it changes nothing. That it is idempotent says less: that a second call changes nothing *more*,
/// which holds for a call right after the first and not for one after somebody else's. Such a tool is guarded.
fn is_read_only(tool: &Tool) -> bool {
    tool.annotations.as_ref().is_some_and(|annotations| annotations.read_only_hint == Some(true))
}

/// Guards a tool. `intents` are those of the tools before it, with their names.
fn guard_one<S, L>(
    route: &mut ToolRoute<S>,
    tool: Guarded,
    terms: &Arc<Terms<L>>,
    intents: &mut HashMap<String, String>,
) -> Result<(), GuardError>
where
    S: Clone + Send + Sync + 'static,
    L: LedgerStore,
{
    let name = route.attr.name.to_string();
    let intent = tool.intent.clone().unwrap_or_else(|| name.clone());
    if let Err(source) = Intent::new(intent.clone()) {
        return Err(GuardError::Intent { tool: name, source });
    }
    if let Some(other) = intents.insert(intent.clone(), name.clone()) {
        let mut tools = [other, name];
        tools.sort();
        return Err(GuardError::SharedIntent { intent, tools });
    }
    if matches!(tool.naming, Naming::Key) {
        // A client that lists the tools reads off which key it has to send.
        let meta = route.attr.meta.get_or_insert_with(MetaObject::default);
        meta.insert(KEY.to_owned(), terms.key_name.clone().into());
    }
    let own = Arc::clone(&route.call);
    let guarded = Arc::new(GuardedRoute { terms: Arc::clone(terms), tool, intent, own });
    route.call = Arc::new(move |context| guarded.answer(context));
    Ok(())
}

impl<S, L> fmt::Debug for Guard<S, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("tools", &self.tools.keys())
            .field("key_name", &self.key_name)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
