//! A client in another language sees what ours sees: answers, replays, and the details of refusals decoded.
//!
//! `scripts/foreign-client` installs it where it can and names its interpreter in `IDEMPOTENCY_GRPC_PYTHON`. Without that
//! there is nothing to run, which the test says; the script says whether it could be installed.

use std::{env, path::Path};

use serde_json::json;
use tokio::process::Command;

use crate::{
    caller::{Call, Page},
    server::Setting,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_in_python_sees_the_details_decoded() {
    let Some(python) = env::var_os("IDEMPOTENCY_GRPC_PYTHON") else {
        println!("NOT RUN: IDEMPOTENCY_GRPC_PYTHON names no Python with grpcio; scripts/foreign-client does");
        return;
    };
    // Long enough for its fifty copies; the copy of the held order comes into conflict after that.
    let setting = Setting::memory("tonic").with_config(json!({ "mode": "wait", "wait_ms": 2_000 }));
    let server = setting.start().await;
    setting.hold();
    let caller = server.caller.clone();
    let running = tokio::spawn(async move { caller.send(Call::to(Page::Held, "held")).await });
    server.placed(1).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doors/foreign/client.py");
    let address = server.client.address().to_string();
    let told = Command::new(python).arg(script).arg(address).output().await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success() && out.trim_end() == "ok", "{out}\n{err}");
    assert!(!running.is_finished());
    setting.let_go();
    running.await.unwrap().ran();
    assert_eq!(server.orders().await, 2, "the held one, and one of fifty copies");
    assert_eq!(
        server.runs().await,
        6,
        "two orders, the fields, an error that was kept, and two that were not"
    );
}
