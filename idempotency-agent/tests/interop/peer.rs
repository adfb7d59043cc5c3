//! The Python side: a process that is told what to do.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

pub(crate) struct Peer {
    _process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub(crate) async fn start(python: &str, arguments: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/worker.py");
        let mut command = Command::new(python);
        command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (orders, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut peer = Self { _process: process, orders, answers: BufReader::new(answers).lines() };
        // It answers once its store is open.
        peer.ask(serde_json::json!({"do": "history", "scope": "nothing"})).await;
        peer
    }

    /// Has it do something, and says what that came to.
    pub(crate) async fn ask(&mut self, order: Value) -> Value {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.unwrap();
        let answer = self.answers.next_line().await.unwrap();
        serde_json::from_str(&answer.unwrap_or_else(|| panic!("Python ended at {order}"))).unwrap()
    }
}
