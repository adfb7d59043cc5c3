//! A client in another language sees what ours sees: answers, replays, and the details of refusals decoded.
//!
//! `scripts/foreign-client` installs it where it can and names its interpreter in `IDEMPOTENCY_GRPC_PYTHON`. Without that
//! there is nothing to run, which the test says; the script says whether it could be installed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{env, path::Path};

use tokio::process::Command;

use crate::shop::{Shop, keyed, order};

#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "shared by several tests"
)]
mod shop;

#[tokio::test]
async fn a_client_in_python_sees_the_details_decoded() {
    let Some(python) = env::var_os("IDEMPOTENCY_GRPC_PYTHON") else {
        println!("NOT RUN: IDEMPOTENCY_GRPC_PYTHON names no Python with grpcio; scripts/foreign-client does");
        return;
    };
    let shop = Shop::open().await;
    let mut held = keyed(order("slow"));
    held.metadata_mut().insert("idempotency-key", "held".parse().unwrap());
    let client = shop.client().await;
    let running = tokio::spawn(async move { client.create(held).await });
    shop.run_began().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/client.py");
    let told = Command::new(python).arg(script).arg(shop.address.to_string()).output().await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success() && out.trim_end() == "ok", "{out}\n{err}");
    assert!(!running.is_finished());
    shop.site.may_go_on.add_permits(1);
    assert_eq!(running.await.unwrap().unwrap().into_inner().item, "slow");
    assert_eq!(shop.site.runs(), 3, "the held run, the tea, and nothing");
}
