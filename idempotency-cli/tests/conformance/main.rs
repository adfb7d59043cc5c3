//! `idempotency conformance` in the hands of somebody who calls it wrongly, and before servers that are none.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod hostile;

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// How long a run may take that has nothing to wait for but its own limit.
const PATIENCE: Duration = Duration::from_secs(20);

fn conformance(arguments: &[&str]) -> Output {
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_idempotency"))
        .arg("conformance")
        .args(arguments)
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    assert!(begun.elapsed() < PATIENCE, "{arguments:?} took {:?}", begun.elapsed());
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Serves every connection with `serve`, each in a thread of its own, and says where.
fn server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (serve, stream) = (serve.clone(), stream.unwrap());
            thread::spawn(move || serve(stream));
        }
    });
    url
}

/// Reads a request up to the end of its head, and says its first line.
fn request_line(stream: &mut TcpStream) -> String {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        request.push(byte[0]);
    }
    String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned()
}

/// A server that has a count, and refuses everything else with 400.
fn refusing(mut stream: TcpStream) {
    let answer = if request_line(&mut stream).starts_with("GET") {
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"count\":0}"
    } else {
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    };
    stream.write_all(answer.as_bytes()).unwrap();
}

#[test]
fn a_wrong_call_is_told_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    let broken = folder.path().join("broken");
    fs::create_dir_all(broken.join("core")).unwrap();
    fs::write(broken.join("core/a.json"), "{\"id\":\"core/a\"}").unwrap();
    let broken = broken.display().to_string();
    let nowhere = folder.path().join("no/such/folder").display().to_string();
    let url = ["--url", "http://127.0.0.1:1"];
    for (arguments, clue) in [
        (vec![], "--url"),
        (vec!["--url"], "--url"),
        (vec!["--url", "--list"], "--url"),
        (vec!["--url", "127.0.0.1:80"], "http://"),
        (vec!["--url", "https://a.example"], "TLS"),
        (vec!["--url", "http://a.example:99999"], "port"),
        (vec!["--url", "http://127.0.0.1:1", "--tier", "basic"], "basic"),
        (vec!["--url", "http://127.0.0.1:1", "--only", "core/no-such"], "core/no-such"),
        (
            vec!["--url", "http://127.0.0.1:1", "--tier", "attack", "--only", "core/retry-replays"],
            "no vector",
        ),
        (vec!["--url", "http://127.0.0.1:1", "--capability", "telepathy"], "telepathy"),
        (vec!["--url", "http://127.0.0.1:1", "--ttl-ms", "0"], "--ttl-ms"),
        (vec!["--url", "http://127.0.0.1:1", "--ttl-ms", "soon"], "soon"),
        (vec!["--url", "http://127.0.0.1:1", "--ttl-ms", "2001", "--capability", "short-ttl"], "short-ttl"),
        (vec!["--url", "http://127.0.0.1:1", "--timeout", "0"], "--timeout"),
        (vec!["--url", "http://127.0.0.1:1", "--capability", "principal"], "--caller-header"),
        (vec!["--url", "http://127.0.0.1:1", "--capability", "restart"], "--restart"),
        (vec!["--url", "http://127.0.0.1:1", "--header", "a header"], "a header"),
        (vec!["--url", "http://127.0.0.1:1", "--key-suffix", "a\"b"], "--key-suffix"),
        (vec!["--url", "http://127.0.0.1:1", "--report", "html"], "html"),
        (vec!["--url", "http://127.0.0.1:1", "--vectors", &nowhere], "holds no vectors"),
        (vec!["--url", "http://127.0.0.1:1", "--vectors", &empty], "holds no vectors"),
        (vec!["--url", "http://127.0.0.1:1", "--vectors", &broken], "a.json is not a vector: missing field"),
        (vec!["--url", "http://127.0.0.1:1", "--out", &nowhere], "--out"),
        ([url.as_slice(), &["--frobnicate"]].concat(), "--frobnicate"),
    ] {
        let output = conformance(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(clue), "{arguments:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn who_asks_what_there_is_needs_no_server() {
    let output = conformance(&["--list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(list.lines().count() > 50, "{list}");
    let line = list.lines().find(|line| line.starts_with("core/expired-key-runs-anew\t")).unwrap();
    assert!(line.contains("\timplied\t2.3\tshort-ttl\t"), "{line}");
    assert_eq!(conformance(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_server_that_keeps_the_claim_ends_with_0_and_one_that_breaks_it_with_1() {
    let url = server(refusing);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report.xml").display().to_string();
    let passing = ["--url", &url, "--only", "core/missing-key-refused", "--report", "junit", "--out", &out];
    let output = conformance(&passing);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "nothing is shown where there is no terminal"
    );
    let report = fs::read_to_string(out).unwrap();
    assert!(report.contains("tests=\"1\" failures=\"0\" errors=\"0\""), "{report}");

    let output = conformance(&["--url", &url, "--tier", "core", "--report", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["totals"]["fail"].as_u64() > Some(20), "{report}");
    assert_eq!(report["totals"]["error"], 0, "{report}");
    assert_eq!(report["results"][0]["outcome"], "fail");
}

#[test]
fn what_the_target_was_not_declared_to_have_is_no_failure() {
    let url = server(refusing);
    let output = conformance(&["--url", &url, "--only", "core/expired-key-runs-anew"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("0 passed, 0 failed, 1 not applicable, 0 errors"), "{report}");
    assert!(report.contains("it needs short-ttl"), "{report}");
}

#[test]
fn a_server_may_close_a_connection_that_it_has_refused_something_on() {
    // This one closes each. What counts is what it says on the next one.
    let url = server(refusing);
    let output = conformance(&["--url", &url, "--only", "attack/refused-body-is-no-request"]);
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("after-keyless: status: expected 201, got 400"), "{report}");
}

/// Grades a target that is no server, and expects that everything is an error with this clue, told once as well.
fn assert_unjudged(url: &str, clue: &str) {
    let output = conformance(&["--url", url, "--timeout", "300", "--report", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains(clue), "{}", said(&output));
    assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["totals"]["pass"], 0);
    assert_eq!(report["totals"]["fail"], 0);
    assert!(report["gone"].as_str().unwrap().contains(clue), "{}", report["gone"]);
}

#[test]
fn a_target_that_cannot_be_reached_is_said_to_be() {
    // Bound and given back: nobody listens there now.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_unjudged(&format!("http://{address}"), "cannot be reached");
    assert_unjudged("http://no-such-host.invalid", "cannot be reached");
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    let url = server(|mut stream| {
        request_line(&mut stream);
        thread::park();
    });
    assert_unjudged(&url, "had not answered after 300 ms");
}

#[test]
fn a_server_that_trickles_is_not_waited_for() {
    let url = server(|mut stream| {
        request_line(&mut stream);
        let mut is_heard = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Slow: ").is_ok();
        while is_heard {
            thread::sleep(Duration::from_millis(20));
            is_heard = stream.write_all(b"y").is_ok();
        }
    });
    assert_unjudged(&url, "had not answered after 300 ms");
}

#[test]
fn a_server_that_closes_early_is_said_to() {
    assert_unjudged(&server(drop), "closed the connection before it had answered");
    let url = server(|mut stream| {
        request_line(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-").unwrap();
    });
    assert_unjudged(&url, "closed the connection before it had answered (25 bytes");
}

#[test]
fn a_server_that_speaks_something_else_is_said_to() {
    let speaks = |bytes: &'static [u8]| {
        server(move |mut stream| {
            request_line(&mut stream);
            // A client that has heard enough leaves.
            while stream.write_all(bytes).is_ok() {}
        })
    };
    assert_unjudged(&speaks(b"SSH-2.0-OpenSSH_9.9\r\n"), "not HTTP/1.1");
    assert_unjudged(&speaks(&[0, 255, 1, 254]), "not HTTP/1.1");
    assert_unjudged(&speaks(b"HTTP/1.1 200 OK\r\nA: b\r\n"), "not HTTP/1.1");
    assert_unjudged(&speaks(b"HTTP/1.1 200 OK\r\nContent-Length: lots\r\n\r\n"), "not HTTP/1.1");
    assert_unjudged(&speaks(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "not HTTP/1.1");
}

#[test]
fn a_server_that_never_ends_is_left() {
    let url = server(|mut stream| {
        request_line(&mut stream);
        if stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").is_ok() {
            while stream.write_all(&[b'x'; 4096]).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    assert_unjudged(&url, "had not answered after 300 ms");
}

#[test]
fn a_server_without_a_count_cannot_be_judged() {
    let url = server(|mut stream| {
        request_line(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    });
    let output = conformance(&["--url", &url, "--tier", "core", "--report", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["totals"]["pass"], 0, "{report}");
    assert_eq!(report["totals"]["fail"], 0, "{report}");
    let reason = report["results"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no JSON object with a number \"count\""), "{reason}");
}

#[test]
fn a_server_that_dies_half_way_is_not_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().take(20) {
            refusing(stream.unwrap());
        }
        // Nobody listens any more.
    });
    let output = conformance(&["--url", &url, "--report", "json", "--timeout", "300"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["totals"]["fail"].as_u64() > Some(0), "{report}");
    assert!(report["totals"]["error"].as_u64() > Some(30), "{report}");
    assert!(said(&output).contains("it was not asked any more"), "{}", said(&output));
}

#[test]
fn vectors_of_the_first_schema_are_run_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("core")).unwrap();
    let vector = r#"{
        "id": "core/refused", "tier": "core", "draftRef": "section-2.7", "title": "A", "description": "B",
        "fixture": "echo",
        "steps": [
            { "id": "a", "request": { "method": "POST", "path": "/echo", "headers": { "Idempotency-Key": "k" } },
              "expect": { "status": 400 } },
            { "id": "b", "delayMs": 10, "concurrentWith": ["a"],
              "request": { "method": "POST", "path": "/echo", "body": "b" },
              "expect": { "status": 400, "bodyEquals": { "sameAs": "a" }, "bodyBytes": 0, "handlerInvocations": 0,
                          "headers": { "Content-Length": { "regex": "^0$" }, "ETag": { "absent": true } } } }
        ]
    }"#;
    fs::write(folder.path().join("core/refused.json"), vector).unwrap();
    let url = server(|mut stream| {
        let answer = match request_line(&mut stream) {
            line if line.starts_with("POST /reset") => "HTTP/1.1 204 No Content\r\n\r\n",
            line if line.starts_with("GET") => "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"count\":0}",
            _ => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        };
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let vectors = folder.path().display().to_string();
    let output = conformance(&["--url", &url, "--vectors", &vectors]);
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("1 passed, 0 failed, 0 not applicable, 0 errors"), "{report}");

    fs::write(
        folder.path().join("core/refused.json"),
        vector.replace("\"bodyBytes\": 0", "\"bodyBytes\": 1"),
    )
    .unwrap();
    let output = conformance(&["--url", &url, "--vectors", &vectors]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("expected 1 bytes, got 0"), "{report}");
}
