//! What the tests share: a provider that counts, a server that refunds, and a client.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotency_agent::{Ledger, Policy};
use idempotency_core::LedgerStore;
use idempotency_mcp::{EffectContext, Guard, GuardError, Guarded, guard};
use idempotency_store_memory::MemoryLedger;
use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        tool::ToolCallContext,
    },
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        Implementation, InitializeRequestParams, InitializeResult, InputRequiredResult, JsonObject,
        MetaObject, ProtocolVersion, RequestMetaObject, RequestParamsMeta, ServerCapabilities, ServerConfig,
        Tool, ToolAnnotations,
    },
    service::{RequestContext, RunningService, ServiceError, serve_directly},
    tool_handler,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split},
    sync::{Semaphore, watch},
    time::timeout,
};

pub(crate) type Client = RunningService<RoleClient, InitializeRequestParams>;
type Answering<'a> = Pin<Box<dyn Future<Output = Result<CallToolResponse, ErrorData>> + Send + 'a>>;

/// How the provider's next request ends. All but the first two of them do so after the money has moved.
pub(crate) enum How {
    Refuse(ErrorData),
    Ask(&'static str),
    Answer(CallToolResponse),
    Fail(ErrorData),
    Panic,
    /// Waits until the gate is opened.
    Hold,
    /// Waits until the call is cancelled, and fails.
    HeedCancelling,
    /// Marks the point of no return first.
    Mark(Box<Self>),
}

/// Somebody who moves money, and remembers under which keys.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    heard: Mutex<Vec<Value>>,
    posts: watch::Sender<Vec<String>>,
    next: Mutex<VecDeque<How>>,
    gate: Semaphore,
}

impl Provider {
    pub(crate) fn new() -> Self {
        let (next, gate) = (Mutex::default(), Semaphore::new(0));
        Self(Arc::new(Inner { heard: Mutex::default(), posts: watch::Sender::default(), next, gate }))
    }

    /// How its next requests end, in this order. The others are answered.
    pub(crate) fn will<const N: usize>(&self, how: [How; N]) {
        self.0.next.lock().unwrap().extend(how);
    }

    /// How often money has moved.
    pub(crate) fn posts(&self) -> usize {
        self.0.posts.borrow().len()
    }

    /// What each call that ran said: its arguments, its state and its answers.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.0.heard.lock().unwrap().clone()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.posts.borrow().clone()
    }

    /// Waits until money has moved so often.
    pub(crate) async fn posted(&self, times: usize) {
        let mut posts = self.0.posts.subscribe();
        let posted = timeout(Duration::from_secs(60), posts.wait_for(|posts| posts.len() >= times));
        posted.await.expect("money moves").unwrap();
    }

    /// Lets whoever waits at the gate through.
    pub(crate) fn open(&self) {
        self.0.gate.add_permits(1);
    }

    async fn refund(&self, call: &ToolCallContext<'_, Bank>) -> Result<CallToolResponse, ErrorData> {
        self.0.heard.lock().unwrap().push(json!([call.arguments, call.request_state, call.input_responses]));
        let context = &call.request_context;
        let fx = context.extensions.get::<EffectContext>().cloned();
        let mut how = self.0.next.lock().unwrap().pop_front();
        match how {
            Some(How::Refuse(error)) => return Err(error),
            Some(How::Ask(state)) => return Ok(InputRequiredResult::from_request_state(state).into()),
            other => how = other,
        }
        if let Some(How::Mark(then)) = how {
            let marked = fx.as_ref().unwrap().point_of_no_return().await;
            marked.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            how = Some(*then);
        }
        let key = fx.map_or_else(|| "unguarded".to_owned(), |fx| fx.idempotency_key().as_str().to_owned());
        self.0.posts.send_modify(|posts| posts.push(key));
        match how {
            Some(How::Answer(response)) => return Ok(response),
            Some(How::Fail(error)) => return Err(error),
            Some(How::Panic) => std::panic::resume_unwind(Box::new("a panic of the tool's own")),
            Some(How::HeedCancelling) => {
                context.ct.cancelled().await;
                return Err(internal());
            }
            Some(How::Hold) => self.0.gate.acquire().await.unwrap().forget(),
            // After the mark.
            Some(How::Refuse(error)) => return Err(error),
            Some(How::Ask(state)) => return Ok(InputRequiredResult::from_request_state(state).into()),
            Some(How::Mark(_)) | None => {}
        }
        Ok(CallToolResult::structured(json!({"refund": self.posts()})).into())
    }
}

/// A server that refunds, and tells how often it did.
#[derive(Clone)]
pub(crate) struct Bank {
    pub(crate) tools: ToolRouter<Self>,
    pub(crate) provider: Provider,
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Bank {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

impl Bank {
    /// The bank whose `refund` is guarded in this way.
    pub(crate) fn new(refund: Guarded) -> Self {
        Self::guarded(|guard| guard.scope("bank").tool("refund", refund)).unwrap()
    }

    pub(crate) fn by_key() -> Self {
        Self::new(Guarded::by_key())
    }

    pub(crate) fn guarded(
        choose: impl FnOnce(Guard<Self, MemoryLedger>) -> Guard<Self, MemoryLedger>,
    ) -> Result<Self, GuardError> {
        Self::with_ledger(&ledger(Policy::new()), choose)
    }

    pub(crate) fn with_ledger<L: LedgerStore>(
        ledger: &Ledger<L>,
        choose: impl FnOnce(Guard<Self, L>) -> Guard<Self, L>,
    ) -> Result<Self, GuardError> {
        let tools = choose(guard(Self::router(), ledger.clone())).build()?;
        Ok(Self { tools, provider: Provider::new() })
    }

    /// `refund`, which writes, and `balance`, which reads.
    pub(crate) fn router() -> ToolRouter<Self> {
        let refund: fn(ToolCallContext<'_, Self>) -> Answering<'_> =
            |context| Box::pin(async move { context.service.provider.refund(&context).await });
        let balance: fn(ToolCallContext<'_, Self>) -> Answering<'_> = |context| {
            Box::pin(async move {
                let posts = context.service.provider.posts().to_string();
                Ok(CallToolResult::success(vec![ContentBlock::text(posts)]).into())
            })
        };
        let reads = tool("balance").with_annotations(ToolAnnotations::new().read_only(true));
        let routes = [ToolRoute::new_dyn(tool("refund"), refund), ToolRoute::new_dyn(reads, balance)];
        routes.into_iter().fold(ToolRouter::new(), ToolRouter::with_route::<_, ()>)
    }

    /// A client of the bank over a transport of its own.
    pub(crate) async fn client(&self) -> Client {
        let (ours, theirs) = duplex(64 * 1024);
        connect(self.clone(), ours, theirs)
    }

    /// A client whose line breaks instead of bringing the first answer to a call of a tool.
    pub(crate) async fn client_that_loses_its_answer(&self) -> Client {
        let ((ours, near), (far, theirs)) = (duplex(64 * 1024), duplex(64 * 1024));
        tokio::spawn(lose_an_answer(near, far));
        connect(self.clone(), ours, theirs)
    }

    /// A client of a server that drops a call once money has moved, as a transport may whose client has gone.
    pub(crate) async fn client_of_one_that_drops_calls(&self) -> Client {
        let (ours, theirs) = duplex(64 * 1024);
        connect(Dropping(self.clone()), ours, theirs)
    }
}

#[derive(Clone)]
struct Dropping(Bank);

impl ServerHandler for Dropping {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            answer = self.0.tools.call(ToolCallContext::new(&self.0, request, context)) => answer,
            () = self.0.provider.posted(1) => Err(internal()),
        }
    }
}

fn connect(server: impl ServerHandler, ours: DuplexStream, theirs: DuplexStream) -> Client {
    let capabilities = ClientCapabilities::builder().enable_elicitation().enable_tasks().build();
    let client = InitializeRequestParams::new(capabilities, Implementation::new("client", "1"))
        .with_protocol_version(ProtocolVersion::V_2026_07_28);
    let mut info = InitializeResult::new(ServerCapabilities::builder().enable_tools().build());
    info.protocol_version = ProtocolVersion::V_2026_07_28;
    let serving = serve_directly::<RoleServer, _, _, _, _>(server, ours, Some(client.clone()));
    tokio::spawn(serving.waiting());
    serve_directly::<RoleClient, _, _, _, _>(client, theirs, Some(info.into()))
}

/// Passes on what is said until the server answers a call of a tool, and closes both sides in the place of that.
async fn lose_an_answer(server: DuplexStream, client: DuplexStream) {
    let ((from_server, mut to_server), (from_client, mut to_client)) = (split(server), split(client));
    let (mut answers, mut requests) =
        (BufReader::new(from_server).lines(), BufReader::new(from_client).lines());
    loop {
        let (line, to_server_now) = tokio::select! {
            line = answers.next_line() => (line, false),
            line = requests.next_line() => (line, true),
        };
        let Ok(Some(line)) = line else { return };
        let line = line + "\n";
        if to_server_now {
            to_server.write_all(line.as_bytes()).await.unwrap();
        } else if line.contains("\"content\"") {
            return;
        } else {
            to_client.write_all(line.as_bytes()).await.unwrap();
        }
    }
}

pub(crate) fn ledger(policy: Policy) -> Ledger<MemoryLedger> {
    Ledger::builder(MemoryLedger::new()).policy(policy).build().unwrap()
}

pub(crate) fn tool(name: &'static str) -> Tool {
    Tool::new(name, "", Arc::new(object(json!({"type": "object"}))))
}

/// A call of `refund` for an order, under a key or none.
pub(crate) fn refund(key: Option<&str>, order: &str) -> CallToolRequestParams {
    call("refund", key, json!({"order": order}))
}

pub(crate) fn call(tool: &'static str, key: Option<&str>, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool).with_arguments(object(arguments));
    if let Some(key) = key {
        params.set_meta(meta(json!({"idempotency-key": key})));
    }
    params
}

pub(crate) fn meta(members: Value) -> RequestMetaObject {
    RequestMetaObject(MetaObject(object(members)))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// The result of a call, which has one.
pub(crate) async fn result(client: &Client, params: CallToolRequestParams) -> CallToolResult {
    match answer(client, params).await.unwrap() {
        CallToolResponse::Complete(result) => result,
        other => panic!("{other:?}"),
    }
}

/// The answer to one call, with which something comes before it hangs.
pub(crate) async fn answer(
    client: &Client,
    params: CallToolRequestParams,
) -> Result<CallToolResponse, ServiceError> {
    let answered = timeout(Duration::from_secs(60), client.peer().call_tool_once(params));
    answered.await.expect("an answer")
}

/// What became of a call: `executed`, `replayed`, or what its mark says.
pub(crate) fn status(result: &CallToolResult) -> String {
    let of = |name: &str| result.meta.as_ref().and_then(|meta| meta.get(name));
    match (of("idempotency-outcome"), of("idempotency-replayed")) {
        (Some(outcome), _) => outcome["status"].as_str().unwrap().to_owned(),
        (None, Some(replayed)) => format!("replayed{}", if *replayed == true { "" } else { "?" }),
        (None, None) => "executed".to_owned(),
    }
}

/// All its text.
pub(crate) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.text.as_str()).collect::<Vec<_>>().join("\n")
}

pub(crate) fn internal() -> ErrorData {
    ErrorData::internal_error("connection reset", None)
}

pub(crate) fn tool_error() -> CallToolResult {
    let mut result = CallToolResult::structured(json!({"why": "timed out"}));
    result.is_error = Some(true);
    result
}

/// As `first` has to be when it is given again, as JSON to the byte.
pub(crate) fn replay_of(first: &CallToolResult) -> String {
    let mut replay = first.clone();
    replay
        .meta
        .get_or_insert_with(MetaObject::default)
        .insert("idempotency-replayed".to_owned(), json!(true));
    serde_json::to_string(&replay).unwrap()
}
