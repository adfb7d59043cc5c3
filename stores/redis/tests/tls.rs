//! TLS: the server is who its certificate says, or nobody is connected to. The certificates in `tls_files` are of an
//! authority that exists for these tests.
//!
//! Whom this process trusts is said by an environment variable, so each test starts a copy of its own executable.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use std::{env, fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, process::Command};

use idempotency_core::{Notify, Settled, Store};
use idempotency_services::RedisServer;
use idempotency_store_redis::{OpenError, RedisStore};
use scene::{DAY, claim, keep, outcome, server};
use tempfile::TempDir;

const URL: &str = "IDEMPOTENCY_REDIS_TEST_TLS";

/// A server that speaks TLS, the URL of it, and its files.
fn secure_server() -> Option<(RedisServer, String, TempDir)> {
    let files = tempfile::tempdir().unwrap();
    // The server's user is another than ours.
    fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |name: &str| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls_files").join(name);
        let copy = files.path().join(name);
        fs::copy(source, &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        copy.to_str().unwrap().to_owned()
    };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (certificate, key, authority) = (copy("server.pem"), copy("server.key"), copy("authority.pem"));
    let settings = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
    ];
    Some((server(&settings)?, format!("rediss://127.0.0.1:{port}/"), files))
}

/// Runs a test once more in a process of its own that trusts nobody but the authority in a file.
fn trusting(authority: &Path, test: &str, url: &str) {
    let ended = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("SSL_CERT_FILE", authority)
        .env_remove("SSL_CERT_DIR")
        .env(URL, url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && String::from_utf8_lossy(&ended.stdout).contains("1 passed"), "{said}");
}

#[tokio::test]
async fn a_store_runs_over_tls_its_subscription_too() {
    if let Ok(url) = env::var(URL) {
        let store = RedisStore::connect(&url).await.unwrap();
        let lease = claim(&store, "k").await;
        store.ended(&lease.address).await; // wakes when the subscription begins
        let settled = store.complete(&lease, &outcome(), keep(DAY)).await.unwrap();
        assert_eq!(settled, Settled::Applied);
        return;
    }
    let Some((_server, url, files)) = secure_server() else { return };
    let authority = files.path().join("authority.pem");
    trusting(&authority, "a_store_runs_over_tls_its_subscription_too", &url);
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_connected_to() {
    if let Ok(url) = env::var(URL) {
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, OpenError::Unavailable(_) | OpenError::Refused(_)), "{error:?}");
        return;
    }
    let Some((_server, url, files)) = secure_server() else { return };
    // The server's own certificate is no authority.
    let stranger = files.path().join("server.pem");
    trusting(&stranger, "a_server_that_nobody_vouches_for_is_not_connected_to", &url);
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_an_error() {
    let Some(server) = server(&[]) else { return };
    let url = server.url().replace("redis://", "rediss://");
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Unavailable(_) | OpenError::Refused(_)), "{error:?}");
}
