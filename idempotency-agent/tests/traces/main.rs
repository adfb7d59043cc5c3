//! The original's law, recorded: every step of every trace has to come to the same answer and leave the same document.
//!
//! `LEDGER_VECTORS` names another file of traces to replay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use idempotency_agent::ledger::Document;
use serde_json::Value;

mod step;

use step::{Expected, Step, Trace};

fn vectors() -> PathBuf {
    env::var_os("LEDGER_VECTORS").map_or_else(
        || [env!("CARGO_MANIFEST_DIR"), "tests/vectors/ledger-public.jsonl"].iter().collect(),
        Into::into,
    )
}

/// Replays a trace up to its first step that differs.
fn replay(trace: &Trace) -> Result<usize, String> {
    let mut document = trace.initial.as_ref().map(|text| Document::read(text.get()).unwrap());
    let mut state = trace.initial.as_ref().map(|text| serde_json::from_str::<Value>(text.get()).unwrap());
    for (number, step) in trace.steps.iter().enumerate() {
        let Step { op, .. } = step;
        let found = document.clone().unwrap_or_else(Document::empty);
        let (write, out) = step.run(found, &trace.scope, &trace.terms());
        let differs = |what: &str, is: &dyn std::fmt::Debug, ought: &dyn std::fmt::Debug| {
            Err(format!("{} step {number} ({op}): {what}\n is {is:?}\n not {ought:?}", trace.id))
        };
        let Expected { state: next, out: wanted } = step.expected(state.as_ref());
        if write.is_some() != step.delta.is_some() {
            return differs("writes", &write.is_some(), &step.delta.is_some());
        }
        if let Some(write) = write {
            let text = write.to_text();
            let written: Value = serde_json::from_str(&text).unwrap();
            if Some(&written) != next.as_ref() {
                return differs("document", &written, &next);
            }
            // What is kept is what was written and read again, as in a store.
            document = Some(Document::read(&text).unwrap());
        }
        if !step.is_same(&out, &wanted) {
            return differs("answer", &out, &wanted);
        }
        state = next;
    }
    Ok(trace.steps.len())
}

#[test]
fn every_trace_of_the_original_is_the_strict_law() {
    let text = fs::read_to_string(vectors()).unwrap();
    let (mut steps, mut wrong, mut kinds) = (0, Vec::new(), BTreeMap::<String, usize>::new());
    for line in text.lines() {
        let trace: Trace = serde_json::from_str(line).unwrap();
        *kinds.entry(trace.kind.clone()).or_default() += 1;
        match replay(&trace) {
            Ok(count) => steps += count,
            Err(difference) => wrong.push(difference),
        }
    }
    let traces: usize = kinds.values().sum();
    println!("{traces} traces, {steps} steps, {} differ: {kinds:?}", wrong.len());
    assert!(traces > 0 && steps > traces, "nothing was replayed");
    let first = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {traces} traces differ, first:\n{first}", wrong.len());
}

/// The traces tell the laws apart: the mended one differs in many, and where it does, it is for one of the faults.
#[test]
fn the_mended_law_is_another_one() {
    let text = fs::read_to_string(vectors()).unwrap();
    let differing = text.lines().filter(|line| {
        let mut trace: Trace = serde_json::from_str(line).unwrap();
        trace.compat = idempotency_agent::Compat::Mended;
        replay(&trace).is_err()
    });
    assert!(differing.count() > 0);
}
