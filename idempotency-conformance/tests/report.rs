//! The pages on other implementations are what the results give: `peers/run --check` renders them again and compares.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The pages, and what renders them.
const PAGES: [&str; 2] = ["REPORT.md", "DRAFT-GAPS.md"];
const PROGRAMS: [&str; 6] = ["run", "gaps.py", "grading.py", "launch.py", "manifest.py", "report.py"];

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn check(folder: &Path) -> Output {
    let run = folder.join("peers/run");
    Command::new("python3").arg(run).arg("--check").output().expect("python3 can be run")
}

/// The pages, their results and what renders them, in a folder where they can be changed.
fn copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder can be made");
    let results = copy.path().join("peers/results");
    fs::create_dir_all(&results).unwrap();
    let programs = PROGRAMS.map(|name| format!("peers/{name}"));
    let files =
        PAGES.map(str::to_owned).into_iter().chain(programs).chain(["peers/manifest.toml".to_owned()]);
    for file in files {
        fs::copy(here().join(&file), copy.path().join(&file)).unwrap();
    }
    for result in fs::read_dir(here().join("peers/results")).unwrap() {
        let result = result.unwrap();
        fs::copy(result.path(), results.join(result.file_name())).unwrap();
    }
    copy
}

#[test]
fn the_pages_are_what_the_results_give() {
    let checked = check(&here());
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn a_page_that_says_otherwise_is_found() {
    let copy = copy();
    assert!(check(copy.path()).status.success());
    let result = copy.path().join("peers/results/idempotent.json");
    let text = fs::read_to_string(&result).unwrap();
    let doctored = text.replacen(r#""outcome": "fail""#, r#""outcome": "pass""#, 1);
    assert_ne!(text, doctored, "it fails nothing, so that nothing can be hidden");
    fs::write(&result, doctored).unwrap();
    let checked = check(copy.path());
    assert!(!checked.status.success());
    assert!(String::from_utf8_lossy(&checked.stderr).contains("REPORT.md"), "{checked:?}");
}

#[test]
fn every_vector_that_a_page_names_is_there() {
    for page in PAGES {
        let text = fs::read_to_string(here().join(page)).unwrap();
        let named: Vec<&str> =
            text.split("](vectors/").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
        assert!(!named.is_empty(), "{page} names no vector");
        for vector in named {
            assert!(
                here().join("vectors").join(vector).is_file(),
                "{page} names {vector}, which is not there"
            );
        }
    }
}
