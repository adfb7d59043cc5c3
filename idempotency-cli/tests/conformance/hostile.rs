//! Targets, vectors, files and commands that mean harm: each ends in bounded time, with a reason, and without a panic.

use std::{os::unix, process::Stdio};

use super::*;

/// Like [`server`], but for reads: each page but the count is answered with these bytes again and again.
fn repeating(begin: &'static [u8], again: Vec<u8>) -> String {
    server(move |mut stream| {
        if request_line(&mut stream).starts_with("GET") {
            // Who has heard enough leaves.
            let _ = stream.write_all(COUNT);
            return;
        }
        let mut is_heard = stream.write_all(begin).is_ok();
        while is_heard && !again.is_empty() {
            is_heard = stream.write_all(&again).is_ok();
        }
    })
}

const COUNT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"count\":0}";

/// Grades with one vector, and says its outcome and reason.
fn judged(url: &str, vector: &str) -> (String, String) {
    let output = conformance(&["--url", url, "--timeout", "2000", "--only", vector, "--report", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |member: &str| report["results"][0][member].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("reason"))
}

fn assert_fails(begin: &'static [u8], again: &[u8], clue: &str) {
    let begun = Instant::now();
    let (outcome, reason) = judged(&repeating(begin, again.to_vec()), "core/first-request-runs");
    assert_eq!(outcome, "fail", "{reason}");
    assert!(reason.contains(clue), "expected {clue:?}: {reason}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{clue}: {:?}", begun.elapsed());
}

#[test]
fn what_has_no_end_is_given_up() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let many = [b'x'; 64 * 1024];
    assert_fails(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", "its head cannot be read: too many headers");
    assert_fails(b"HTTP/1.1 200 OK\r\nX: ", &many, "its head is longer than");
    assert_fails(b"HTTP/1.1 200 OK\r\n\r\n", &many, "its body is longer than");
    assert_fails(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
        &many,
        "its body is longer than",
    );
    assert_fails(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", "101 interim answers");
    let chunks = [b"100\r\n".as_slice(), &[b'x'; 256], b"\r\n"].concat().repeat(256);
    assert_fails(chunked, &chunks, "its body is longer than");
    assert_fails(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6400000\r\n",
        &many,
        "its body is longer",
    );
    assert_fails(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;",
        &many,
        "a chunk of its body is malformed",
    );
    assert_fails(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ",
        &many,
        "its trailer cannot be read",
    );
    assert_fails(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        &many,
        "malformed",
    );
}

#[test]
fn what_is_odd_and_has_an_end_is_judged() {
    let once = |answer| repeating(answer, Vec::new());
    let redirect = b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let (outcome, reason) = judged(&once(redirect), "core/first-request-runs");
    assert_eq!(outcome, "fail", "a redirect is an answer, and nobody follows it");
    assert!(reason.contains("got 307"), "{reason}");
    let (outcome, reason) = judged(&once(b"HTTP/1.0 500 Old\r\n\r\nwhat now"), "core/missing-key-refused");
    assert_eq!((outcome.as_str(), reason.as_str()), ("fail", "keyless: status: expected 400, got 500"));
    let (outcome, reason) =
        judged(&once(b"HTTP/1.1 201 OK\r\nContent-Length: 9\r\n\r\nhalf"), "core/first-request-runs");
    assert_eq!(outcome, "fail");
    assert!(reason.contains("body: expected it whole, got it cut off"), "{reason}");
    let (outcome, reason) = judged(&once(b"HTTP/2 200 OK\r\n\r\n"), "core/first-request-runs");
    assert_eq!(outcome, "fail");
    assert!(reason.contains("its answer is not HTTP/1.1"), "{reason}");
}

#[test]
fn who_answers_everything_with_a_redirect_cannot_be_judged() {
    let url = server(|mut stream| {
        request_line(&mut stream);
        stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let (outcome, reason) = judged(&url, "core/first-request-runs");
    assert_eq!(outcome, "error");
    assert_eq!(reason, "the count of runs cannot be read: GET /counter answered 302");
}

#[test]
fn a_server_of_http_1_0_ends_its_connections_and_breaks_nothing_by_that() {
    let url = server(|mut stream| {
        let line = request_line(&mut stream);
        let answer = if line.starts_with("GET") {
            "HTTP/1.0 200 OK\r\n\r\n{\"count\":0}"
        } else if line.contains("/stream") {
            "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na"
        } else {
            "HTTP/1.0 201 OK\r\n\r\nnext"
        };
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let (outcome, reason) = judged(&url, "attack/replay-on-a-kept-connection");
    assert_eq!(
        (outcome.as_str(), reason.as_str()),
        ("fail", "runs: expected 2, got 0"),
        "only its count is wrong"
    );
}

#[test]
fn vectors_that_cannot_be_read_are_said_to_be() {
    let text = |steps: &str| {
        format!(
            r#"{{"id":"core/a","tier":"core","kind":"implied","section":"2.6","title":"A","description":"B","catches":["c"],"steps":[{steps}]}}"#
        )
    };
    let body =
        |body: &str| text(&format!(r#"{{"send":{{"as":"a","request":{{"path":"/echo","body":{body}}}}}}}"#));
    let files = [
        ("not JSON", "{\"id\": ".to_owned(), "is not a vector: EOF"),
        ("another document", "[]".to_owned(), "is not a vector"),
        ("deep", "[".repeat(100_000), "recursion limit"),
        ("another step", text(r#"{"sleep":1}"#), "unknown variant `sleep`"),
        ("no such request", text(r#"{"start":{"as":"a","request":"b"}}"#), "has no request \"b\""),
        ("endless body", body(r#"{"repeat":["xx",18446744073709551615]}"#), "is not a vector"),
        ("large body", body(r#"{"pad":["x",100000000000]}"#), "is not a vector"),
        ("no base64", body(r#"{"base64":"?"}"#), "is not a vector"),
    ];
    for (what, text, clue) in files {
        assert_refused(what, clue, |folder| fs::write(folder.join("core/a.json"), &text).unwrap());
    }
    let good = text(r#"{"runs":{"exactly":0}}"#);
    assert_refused("twice", "holds core/a twice", |folder| {
        fs::write(folder.join("core/a.json"), &good).unwrap();
        fs::write(folder.join("core/b.json"), &good).unwrap();
    });
    assert_refused("bytes", "a.json cannot be read: stream did not contain valid UTF-8", |folder| {
        fs::write(folder.join("core/a.json"), [0xff, 0xfe]).unwrap();
    });
    assert_refused("a folder", "a.json is not a file", |folder| {
        fs::create_dir(folder.join("core/a.json")).unwrap();
    });
    assert_refused("a loop", "a.json cannot be read: Too many levels of symbolic links", |folder| {
        unix::fs::symlink("a.json", folder.join("core/a.json")).unwrap();
    });
    assert_refused("a link to nothing", "a.json cannot be read: No such file", |folder| {
        unix::fs::symlink("b.json", folder.join("core/a.json")).unwrap();
    });
    assert_refused("a device without end", "a.json is not a file", |folder| {
        unix::fs::symlink("/dev/zero", folder.join("core/a.json")).unwrap();
    });
    assert_refused("a loop of folders", "holds no vectors", |folder| {
        fs::remove_dir(folder.join("core")).unwrap();
        unix::fs::symlink("core", folder.join("core")).unwrap();
    });
}

/// What `lay` puts into a folder is no set of vectors.
fn assert_refused(what: &str, clue: &str, lay: impl FnOnce(&std::path::Path)) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("core")).unwrap();
    lay(folder.path());
    let vectors = folder.path().display().to_string();
    for arguments in
        [vec!["--url", "http://127.0.0.1:1", "--vectors", &vectors], vec!["--list", "--vectors", &vectors]]
    {
        let output = conformance(&arguments);
        assert_eq!(output.status.code(), Some(2), "{what}: {}", said(&output));
        assert!(said(&output).contains(clue), "{what}: {}", said(&output));
        assert!(
            said(&output).starts_with("idempotency conformance: --vectors: "),
            "{what}: {}",
            said(&output)
        );
        assert!(output.stdout.is_empty(), "{what}");
    }
}

#[test]
fn a_report_replaces_a_longer_one_and_nothing_else_does() {
    let url = server(refusing);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.md");
    let out = path.display().to_string();
    fs::write(&path, "an earlier report\n".repeat(10_000)).unwrap();
    let output = conformance(&["--url", &url, "--only", "core/no-such", "--out", &out]);
    assert_eq!(output.status.code(), Some(2));
    assert!(fs::read_to_string(&path).unwrap().starts_with("an earlier report"));
    let output = conformance(&["--url", &url, "--only", "core/missing-key-refused", "--out", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report = fs::read_to_string(&path).unwrap();
    assert!(report.starts_with("# Conformance report") && !report.contains("earlier"), "{report}");
}

#[test]
fn a_report_that_cannot_be_written_is_said_to_be() {
    let url = server(refusing);
    let output = conformance(&["--url", &url, "--only", "core/missing-key-refused", "--out", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the report could not be written: No space left"), "{}", said(&output));
    let output = conformance(&["--url", &url, "--only", "core/missing-key-refused", "--out", "/dev/null"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_list_that_cannot_be_written_is_said_to_be() {
    let list = |out: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_idempotency"));
        command.args(["conformance", "--list"]).stdout(out).stderr(Stdio::piped()).output().unwrap()
    };
    let output = list(fs::File::options().write(true).open("/dev/full").unwrap().into());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the list could not be written: No space left"), "{}", said(&output));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = list(writer.into());
    assert_eq!(output.status.code(), Some(0), "a reader that has left: {}", said(&output));
}

#[test]
fn who_interrupts_it_keeps_the_earlier_report() {
    let (tell, told) = std::sync::mpsc::channel();
    let url = server(move |mut stream| {
        request_line(&mut stream);
        tell.send(()).unwrap();
        thread::park();
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report.md");
    fs::write(&out, "an earlier report").unwrap();
    let mut grading = Command::new(env!("CARGO_BIN_EXE_idempotency"))
        .args(["conformance", "--url", &url, "--out"])
        .arg(&out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    told.recv_timeout(PATIENCE).unwrap();
    let begun = Instant::now();
    let interrupted = Command::new("kill").args(["-INT", &grading.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let ended = grading.wait().unwrap();
    assert_eq!(
        unix::process::ExitStatusExt::signal(&ended),
        Some(2),
        "a shell that runs it ends as well: {ended}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(fs::read_to_string(&out).unwrap(), "an earlier report");
}

#[test]
fn a_restart_speaks_beside_the_report() {
    let url = server(refusing);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("core")).unwrap();
    let restarts = r#"{"id":"core/a","tier":"core","kind":"implied","section":"2.6","title":"A","description":"B","catches":["c"],"requires":["restart"],"steps":[{"restart":"kill"}]}"#;
    fs::write(folder.path().join("core/a.json"), restarts).unwrap();
    let vectors = folder.path().display().to_string();
    let with = |command| {
        conformance(&["--url", &url, "--vectors", &vectors, "--report", "json", "--restart", command])
    };
    let output = with("echo restarting; read -r line || true");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("restarting"), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["totals"]["pass"], 1);
    let output = with("exit 3");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let reason = report["results"][0]["reason"].as_str().unwrap();
    assert_eq!(report["results"][0]["outcome"], "error");
    assert!(reason.contains("the restart failed") && reason.contains("exit status: 3"), "{reason}");
}
