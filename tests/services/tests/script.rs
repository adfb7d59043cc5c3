//! `scripts/services`: safe to run twice, and it stops only what it started.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    net::TcpStream,
    path::Path,
    process::{Command, Output},
};

use idempotency_services::{Persistence, RedisServer};
use tempfile::TempDir;

/// Where the script keeps what it starts. A test that fails leaves nothing running.
struct Servers(TempDir);

impl Servers {
    fn none() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        services(self, &["down"], &[]);
    }
}

/// Runs the script with its data in `folder`, and no server of anybody's own but those in `theirs`.
fn services(folder: &Servers, arguments: &[&str], theirs: &[(&str, &str)]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
    let mut command = Command::new(script);
    for variable in
        ["DATABASE_URL", "PGBOUNCER_URL", "MYSQL_URL", "REDIS_URL", "REDIS_CLUSTER_URL", "DYNAMODB_ENDPOINT"]
    {
        command.env_remove(variable);
    }
    command.env("IDEMPOTENCY_SERVICES_DIR", folder.path().join("servers")).args(arguments);
    command.envs(theirs.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn address(exports: &str) -> String {
    let url = exports.trim_end().strip_prefix("export REDIS_URL=redis://").unwrap();
    url.trim_end_matches('/').to_owned()
}

/// Redis is the quickest to start. Where it is not installed, this says so.
fn is_installed() -> bool {
    RedisServer::start(Persistence::None, &[]).is_some()
}

#[test]
fn a_second_up_starts_nothing_and_down_stops_what_the_first_started() {
    if !is_installed() {
        return;
    }
    let folder = Servers::none();
    let first = said(&services(&folder, &["up", "redis"], &[]));
    let process = fs::read_to_string(folder.path().join("servers/run/redis")).unwrap();
    assert!(TcpStream::connect(address(&first)).is_ok());
    let again = services(&folder, &["up", "redis"], &[]);
    assert_eq!(said(&again), first);
    assert!(again.stderr.is_empty(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(fs::read_to_string(folder.path().join("servers/run/redis")).unwrap(), process);
    assert_eq!(said(&services(&folder, &["env", "redis"], &[])), first);
    said(&services(&folder, &["down"], &[]));
    assert!(TcpStream::connect(address(&first)).is_err());
    assert!(!folder.path().join("servers").exists());
    assert!(!services(&folder, &["env", "redis"], &[]).status.success(), "nothing answers any more");
    said(&services(&folder, &["down"], &[]));
}

#[test]
fn a_server_that_died_is_started_anew() {
    if !is_installed() {
        return;
    }
    let folder = Servers::none();
    let first = said(&services(&folder, &["up", "redis"], &[]));
    let process = fs::read_to_string(folder.path().join("servers/run/redis")).unwrap();
    let number = process.split(' ').next().unwrap();
    assert!(Command::new("kill").args(["-KILL", number]).status().unwrap().success());
    while TcpStream::connect(address(&first)).is_ok() {}
    assert!(!services(&folder, &["env", "redis"], &[]).status.success());
    let second = said(&services(&folder, &["up", "redis"], &[]));
    assert!(TcpStream::connect(address(&second)).is_ok());
    said(&services(&folder, &["down"], &[]));
}

#[test]
fn a_server_of_ones_own_is_passed_on_and_left_alone() {
    let folder = Servers::none();
    let theirs = [("REDIS_URL", "redis://me:a b@example.net/"), ("MYSQL_URL", "mysql://example.net/")];
    let exports = said(&services(&folder, &["up", "redis", "mysql"], &theirs));
    assert_eq!(
        exports,
        "export REDIS_URL=redis://me:a\\ b@example.net/\nexport MYSQL_URL=mysql://example.net/\n"
    );
    assert!(!folder.path().join("servers").exists(), "nothing was started");
}

#[test]
fn a_server_nobody_knows_is_refused() {
    let folder = Servers::none();
    let refused = services(&folder, &["up", "oracle"], &[]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no server oracle"));
}
