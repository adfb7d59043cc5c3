//! What the scripts may do: read and write one key, that of their record or scope.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, fs, path::Path};

/// The name and the text of each script, without its comments.
fn scripts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().map(|line| line.split("--").next().unwrap());
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), code.collect::<Vec<_>>().join("\n"))
        })
        .collect()
}

/// The arguments of each call of a server's command, as they are written.
fn commands(code: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for call in ["redis.call(", "redis.pcall("] {
        for after in code.split(call).skip(1) {
            let arguments = after.split([')', '\n']).next().unwrap();
            commands.push(arguments.split(',').map(|argument| argument.trim().to_owned()).collect());
        }
    }
    assert_eq!(commands.len(), code.matches("redis.").count(), "another way to the server:\n{code}");
    commands
}

/// Those of a record are one text under a key, those of an agent's scope one hash.
#[test]
fn every_command_is_known_and_on_one_key_alone() {
    let (mut records, mut ledgers) = (BTreeSet::new(), BTreeSet::new());
    for (name, code) in scripts() {
        for command in commands(&code) {
            let verb = command[0].trim_matches('\'').to_owned();
            if !["TIME", "PUBLISH"].contains(&verb.as_str()) {
                assert_eq!(command[1], "KEYS[1]", "{name}: {command:?}");
            }
            if name.starts_with("ledger_") { &mut ledgers } else { &mut records }.insert(verb);
        }
        assert!(!code.contains("KEYS[2]") && !code.contains("#KEYS"), "{name} has a second key");
    }
    assert_eq!(records.into_iter().collect::<Vec<_>>(), ["GET", "PUBLISH", "SET", "SETRANGE", "TIME"]);
    let hash = ["HDEL", "HGET", "HGETALL", "HMGET", "HSET", "PERSIST", "PEXPIRE", "TIME"];
    assert_eq!(ledgers.into_iter().collect::<Vec<_>>(), hash);
}

/// An error within a script leaves what was written before it: so nothing that may fail comes after the write.
#[test]
fn nothing_that_may_fail_comes_after_the_write() {
    for (name, code) in scripts() {
        let written = code.find("redis.call('SET'").unwrap_or(code.len());
        let after = &code[written..];
        for reading in ["'GET'", "'TIME'", "redis.call('PUBLISH'"] {
            assert!(!after.contains(reading), "{name}: {reading} after a write");
        }
    }
}

#[test]
fn every_script_is_one_that_the_store_runs() {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/script.rs")).unwrap();
    for (name, _) in scripts() {
        assert!(source.contains(&format!("\"{name}\"")), "{name} is run by nobody");
    }
}
