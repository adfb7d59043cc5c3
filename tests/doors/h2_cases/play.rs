//! A case, step by step.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::{sync::Barrier, task::JoinHandle, time::sleep};

use super::{
    Call, Connection,
    case::{Case, Copies, Executions, Group, Request, Step},
    connection::Seen,
    expect::{Expect, Others},
    stage::Stage,
    words::Words,
};
use crate::server::Setting;

/// Plays a case on a stage of its own.
pub(crate) async fn complaints_about(setting: &Setting, case: &Case) -> Vec<String> {
    let mut play = Play {
        stage: Stage::of(setting, case).await,
        words: Words::default(),
        seen: Others::new(),
        running: HashMap::new(),
        counts: HashMap::new(),
        complaints: Vec::new(),
    };
    play.all(&case.steps).await;
    let Play { stage, mut complaints, .. } = play;
    complaints.extend(stage.complaints().await);
    complaints.into_iter().map(|complaint| format!("{}: {complaint}", case.id)).collect()
}

struct Play {
    stage: Stage,
    words: Words,
    seen: Others,
    running: HashMap<String, JoinHandle<Seen>>,
    counts: HashMap<String, u64>,
    complaints: Vec<String>,
}

impl Play {
    async fn all(&mut self, steps: &[Step]) {
        for step in steps {
            self.one(step).await;
        }
    }

    async fn one(&mut self, step: &Step) {
        match step {
            Step::Send { send, name, expect } => {
                let (connection, call) = self.ready(send).await;
                let seen = connection.send(call).await;
                self.judge(name.as_deref().unwrap_or("send"), expect, seen);
            }
            Step::Start { start, name } => {
                let (connection, call) = self.ready(start).await;
                let running = tokio::spawn(async move { connection.send(call).await });
                self.running.insert(name.clone(), running);
            }
            Step::Await { name, expect } => {
                let seen = self.running.remove(name).unwrap().await.unwrap();
                self.judge(name, expect, seen);
            }
            Step::Burst { burst, expect_all, expect_group } => {
                let answers = self.burst(burst).await;
                self.weigh(expect_group, &answers);
                for seen in answers {
                    self.judge("burst", expect_all, seen);
                }
            }
            Step::Counter { counter } => {
                let count = self.count().await;
                self.counts.insert(counter.clone(), count);
            }
            Step::Executions { executions: Executions { from, to, equals } } => {
                let runs = self.counts[to] - self.counts[from] - 1;
                if runs != *equals {
                    self.complaints.push(format!("{runs} runs between {from} and {to}, not {equals}"));
                }
            }
            Step::Sleep { sleep_ms } => sleep(Duration::from_millis(*sleep_ms)).await,
            Step::Hook { hook } => self.stage.pull(*hook).await,
            Step::Repeat { repeat, vary, keep_keys, steps } => {
                let turns = vary.clone().unwrap_or_else(|| vec![Map::new(); *repeat]);
                let before = self.words.clone();
                for turn in &turns {
                    self.words = if *keep_keys { before.clone() } else { before.without_keys() };
                    self.turn(turn, steps).await;
                }
                self.words = before;
            }
        }
    }

    async fn turn(&mut self, words: &Map<String, Value>, steps: &[Step]) {
        self.words.define(words);
        let before = self.complaints.len();
        Box::pin(self.all(steps)).await;
        for complaint in &mut self.complaints[before..] {
            complaint.push_str(&format!(" (with {words:?})"));
        }
    }

    async fn ready(&mut self, request: &Request) -> (Connection, Call) {
        let call = Call::of(request, &self.stage.authority(request.server), &mut self.words);
        (self.stage.connection(request.server, request.conn.as_deref()).await, call)
    }

    /// Everybody waits for everybody else before anybody sends.
    async fn burst(&mut self, burst: &[Copies]) -> Vec<Seen> {
        let mut calls = Vec::new();
        for Copies { request, count } in burst {
            for _ in 0..*count {
                calls.push(self.ready(request).await);
            }
        }
        let barrier = Arc::new(Barrier::new(calls.len()));
        let calls = calls.into_iter().map(|(connection, call)| {
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                connection.send(call).await
            })
        });
        join_all(calls).await.into_iter().map(Result::unwrap).collect()
    }

    /// Runs the counter, without a key.
    async fn count(&mut self) -> u64 {
        let mut call = Call::post(&self.stage.authority(0), "/counter", "none");
        call.head.headers_mut().clear();
        let seen = self.stage.connection(0, None).await.send(call).await;
        let count: Value = serde_json::from_slice(&seen.body).unwrap();
        count["count"].as_u64().unwrap_or_else(|| panic!("no count: {}", seen.short()))
    }

    fn judge(&mut self, name: &str, expect: &Expect, seen: Seen) {
        let complaints = expect.complaints(&seen, &self.seen, &mut self.words);
        let told = complaints.into_iter().map(|complaint| format!("{name}: {complaint} {}", seen.short()));
        self.complaints.extend(told);
        self.seen.insert(name.to_owned(), seen);
    }

    fn weigh(&mut self, group: &Group, answers: &[Seen]) {
        let mut complain = |found: usize, expected: usize, what: &str| {
            if found != expected {
                self.complaints.push(format!("burst: {found} {what}, not {expected}"));
            }
        };
        let count =
            |is_counted: &dyn Fn(&Seen) -> bool| answers.iter().filter(|seen| is_counted(seen)).count();
        if let Some(expected) = group.fresh {
            complain(count(&Seen::is_fresh), expected, "runs");
        }
        if let Some(expected) = group.distinct_2xx_bodies {
            let bodies = answers.iter().filter(|seen| seen.is_success()).map(|seen| &seen.body);
            complain(bodies.collect::<HashSet<_>>().len(), expected, "bodies");
        }
        for (status, expected) in &group.status_counts {
            let is_counted = |seen: &Seen| seen.status().is_some_and(|found| found.as_str() == status);
            complain(count(&is_counted), *expected, &format!("answers of {status}"));
        }
    }
}
