//! The server under test, as a process.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{self, ExitStatus, Stdio},
    time::{Duration, Instant},
};

pub(crate) use idempotency_services::Server as Backend;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};
use tonic::transport::Endpoint;

use crate::{
    caller::{Call, Caller, Told},
    client::Client,
};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again until `condition` gives something.
pub(crate) async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(met) = condition().await {
            return met;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A place for one server, and for the one that is started in its stead: its store, its orders.
#[derive(Debug)]
pub(crate) struct Setting {
    framework: &'static str,
    store: String,
    config: Value,
    dir: TempDir,
}

impl Setting {
    pub(crate) fn memory(framework: &'static str) -> Self {
        Self::new(framework, |_| "memory".to_owned())
    }

    pub(crate) fn sqlite(framework: &'static str) -> Self {
        Self::new(framework, sqlite)
    }

    /// A door on a store behind a network, with a table or a prefix nobody used before. `None` when nobody said where its
    /// server is.
    pub(crate) fn on(framework: &'static str, backend: Backend) -> Option<Self> {
        let kind = match backend {
            Backend::Postgres | Backend::PgBouncer => "postgres",
            Backend::MySql => "mysql",
            Backend::Redis => "redis",
            Backend::RedisCluster => "redis-cluster",
            Backend::DynamoDb => "dynamodb",
        };
        let space = format!("doors_{}_{}", process::id(), fastrand::u32(..));
        let url = backend.url()?;
        Some(Self { store: format!("{kind}:{url}#{space}"), ..Self::memory(framework) })
    }

    fn new(framework: &'static str, store: fn(&Path) -> String) -> Self {
        let dir = TempDir::new().unwrap();
        Self { framework, store: store(dir.path()), config: Value::Object(serde_json::Map::new()), dir }
    }

    pub(crate) fn with_config(self, config: Value) -> Self {
        Self { config, ..self }
    }

    /// The same door and kind of store, elsewhere.
    pub(crate) fn afresh(&self) -> Self {
        let store = if self.store == "memory" { |_: &Path| "memory".to_owned() } else { sqlite };
        Self { config: self.config.clone(), ..Self::new(self.framework, store) }
    }

    pub(crate) const fn framework(&self) -> &'static str {
        self.framework
    }

    /// Whether the store is still there when a server ended.
    pub(crate) fn outlives_a_process(&self) -> bool {
        self.store != "memory"
    }

    pub(crate) fn database(&self) -> PathBuf {
        database(self.dir.path())
    }

    /// While this file exists, the store does not answer.
    pub(crate) fn outage(&self) -> PathBuf {
        self.dir.path().join("outage")
    }

    /// Holds what the page of held orders runs, until `let_go`.
    pub(crate) fn hold(&self) {
        fs::write(self.held(), "").unwrap();
    }

    pub(crate) fn let_go(&self) {
        fs::remove_file(self.held()).unwrap();
    }

    fn held(&self) -> PathBuf {
        self.dir.path().join("held")
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }

    pub(crate) async fn start(&self) -> Server {
        self.start_with(&[]).await
    }

    pub(crate) async fn start_with(&self, flags: &[&str]) -> Server {
        self.start_by(Command::new(env!("CARGO_BIN_EXE_fixture")), flags).await
    }

    /// Starts a server whose clock is ahead of the host's by `offset`, or behind it.
    pub(crate) async fn start_under(&self, faketime: &Path, offset: &str, flags: &[&str]) -> Server {
        // By what `faketime` preloads, not under it: it would stand before the server, and be killed in its place.
        let library = Command::new(faketime).args(["-f", offset, "printenv", "LD_PRELOAD"]).output().await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_fixture"));
        let library = String::from_utf8(library.unwrap().stdout).unwrap();
        command.env("LD_PRELOAD", library.trim_end()).env("FAKETIME", offset);
        self.start_by(command, flags).await
    }

    async fn start_by(&self, mut command: Command, flags: &[&str]) -> Server {
        let stderr = File::options().create(true).append(true).open(self.dir.path().join("stderr")).unwrap();
        let mut child = command
            .args(["--framework", self.framework, "--store", &self.store])
            .args(["--config", &self.config.to_string()])
            .arg("--orders")
            .arg(self.dir.path().join("orders"))
            .arg("--outage")
            .arg(self.outage())
            .arg("--hold")
            .arg(self.held())
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        timeout(PATIENCE, stdout.read_line(&mut line)).await.unwrap().unwrap();
        let address = line.trim_end().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("not listening: {line:?} {}", self.stderr()));
        let client = Client::to(address.parse().unwrap());
        let caller = if self.framework == "tonic" {
            Caller::of_grpc(Endpoint::try_from(format!("http://{address}")).unwrap())
        } else {
            Caller::Http(client)
        };
        Server { caller, client, child }
    }
}

fn database(dir: &Path) -> PathBuf {
    dir.join("records.db")
}

fn sqlite(dir: &Path) -> String {
    format!("sqlite:{}", database(dir).display())
}

/// A server that runs until it is dropped, told to end, or dies.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) caller: Caller,
    /// For what only HTTP has.
    pub(crate) client: Client,
    child: Child,
}

impl Server {
    /// What `call` comes to.
    pub(crate) async fn told(&self, call: Call) -> Told {
        timeout(PATIENCE, self.caller.send(call)).await.expect("an answer")
    }

    /// What `call` comes to once no other is in flight.
    pub(crate) async fn told_at_last(&self, call: Call) -> Told {
        until("the run is over", async || {
            let told = self.told(call.clone()).await;
            (!told.is_in_flight()).then_some(told)
        })
        .await
    }

    /// How often pages ran that are guarded.
    pub(crate) async fn runs(&self) -> u64 {
        self.caller.runs().await
    }

    /// How many orders were placed, by this server and those before it.
    pub(crate) async fn orders(&self) -> u64 {
        self.caller.orders().await
    }

    /// Waits until this many orders are placed.
    pub(crate) async fn placed(&self, orders: u64) {
        until("the order is placed", async || (self.orders().await == orders).then_some(())).await;
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }

    /// Sends SIGKILL, and waits until the process is gone.
    pub(crate) async fn killed(mut self) {
        self.child.kill().await.unwrap();
    }

    /// How the process ended.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("the process ends").unwrap()
    }
}
