//! SIGTERM ends the server in order: it stops listening, drains, and exits with success.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

#[test]
fn sigterm_drains_and_exits_with_success() {
    let files = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_axum-sqlite-orders"))
        .args(["--port", "0", "--db"])
        .arg(files.path().join("orders.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut greeting = String::new();
    output.read_line(&mut greeting).unwrap();
    assert!(greeting.starts_with("listening on http://127.0.0.1:"), "{greeting}");

    let sent = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(server.wait().unwrap().success(), "{rest}");
    assert!(rest.ends_with("stopped, 0 runs unfinished\n"), "{rest}");
}
