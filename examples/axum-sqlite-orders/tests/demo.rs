//! The front page promises that the demo runs, and that every promise in it is kept.

use std::process::Command;

#[test]
fn every_promise_of_the_demo_is_kept() {
    let output = Command::new(env!("CARGO_BIN_EXE_axum-sqlite-orders")).arg("demo").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));

    let written: Vec<_> = told.lines().filter(|line| line.contains("orders written  ")).collect();
    let counts: Vec<_> = written.iter().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(counts, ["1", "1", "1", "1", "1", "1", "2"], "{told}");
    for seen in [
        "422 fingerprint-mismatch in body",
        "422 credentials-mismatch in credentials",
        "the retry runs and finds its order",
        "the retry runs and orders again",
        "Every promise was kept.",
    ] {
        assert!(told.contains(seen), "{seen}\n{told}");
    }
    assert!(!told.contains("BROKEN"), "{told}");
}
