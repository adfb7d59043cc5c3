//! A trace and its steps, and how what they expect is written.

use std::collections::BTreeMap;

use idempotency_agent::{
    Compat,
    ledger::{
        Asker, Begin, BeginState, Begun, Claim, Claimed, ConflictMode, Document, DocumentError, Effect, End,
        Number, Raw, Renew, Resolution, Resolve, Run, RunMode, Settle, Settled, Step as LawStep, Terms,
        Verdict, begin, check, claim, end, history, renew, resolve, settle,
    },
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

#[derive(Deserialize)]
pub(crate) struct Trace {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) scope: String,
    policy: Policy,
    pub(crate) initial: Option<Box<RawValue>>,
    pub(crate) steps: Vec<Step>,
    #[serde(skip, default = "strict")]
    pub(crate) compat: Compat,
}

fn strict() -> Compat {
    Compat::Strict
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Policy {
    pending_ttl_ms: Box<RawValue>,
    max_attempts: Box<RawValue>,
    retention_ms: Box<RawValue>,
}

impl Trace {
    pub(crate) fn terms(&self) -> Terms {
        let number = |raw: &RawValue| Raw::new(raw.get()).unwrap().to_number().unwrap();
        Terms {
            pending_ttl: number(&self.policy.pending_ttl_ms),
            max_attempts: number(&self.policy.max_attempts),
            retention: number(&self.policy.retention_ms),
            max_result: 1, // by which the original does not go
            compat: self.compat,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) op: String,
    now: Box<RawValue>,
    /// As they are written: numbers of any size stay what they are.
    args: BTreeMap<String, Box<RawValue>>,
    pub(crate) delta: Option<Value>,
    #[serde(default)]
    out: Value,
    #[serde(default)]
    order_sensitive: bool,
}

pub(crate) struct Expected {
    pub(crate) state: Option<Value>,
    pub(crate) out: Value,
}

type Ran = (Option<Document>, Value);

impl Step {
    /// What the step comes to: the document it writes, and its answer as the traces have it.
    pub(crate) fn run(&self, found: Document, scope: &str, terms: &Terms) -> Ran {
        let now = Raw::new(self.now.get()).unwrap().to_number().unwrap();
        match self.op.as_str() {
            "begin" => answered(begin(found, &self.begin(), now, terms), begun),
            "renew" => answered(renew(found, &self.renew(), now, terms), |answer| match answer {
                Ok(run) => json!({"ok": true, "run": run_value(&run)}),
                Err(refused) => json!({"ok": false, "reason": refused.name()}),
            }),
            "end" | "cancel" => answered(end(found, &self.end(), now, terms), |run| {
                run.as_ref().map_or(Value::Null, run_value)
            }),
            "claim" => answered(claim(found, &self.claim(scope), now, terms), claimed),
            "settle" => answered(settle(found, &self.settle(), now, terms), |answer| match answer {
                Settled::Settled { entry, was_abandoned } => {
                    json!({"kind": "settled", "entry": effect_value(&entry), "wasAbandoned": was_abandoned})
                }
                Settled::Stale(entry) => {
                    json!({"kind": "stale", "entry": entry.as_ref().map(effect_value)})
                }
            }),
            "resolve" => answered(resolve(found, &self.resolve(), now, terms), |entry| {
                entry.as_ref().map_or(Value::Null, effect_value)
            }),
            "check" => {
                let known = check(&found, &self.text("key"), now, terms);
                let status = known.status.map_or("none", |status| status.name());
                (None, json!({"status": status, "done": known.is_done()}))
            }
            "history" => {
                let all = history(&found, now, terms);
                (None, all.into_iter().map(|(effect, status)| json!([effect.key, status.name()])).collect())
            }
            other => panic!("an unknown step: {other}"),
        }
    }

    fn begin(&self) -> Begin {
        let mode = match self.text("mode").as_str() {
            "exclusive" => RunMode::Exclusive,
            _ => RunMode::Supersede,
        };
        Begin {
            run_id: self.text("runId"),
            mode,
            lease: self.number("leaseTtlMs"),
            context_at: self.maybe("contextAt"),
        }
    }

    fn renew(&self) -> Renew {
        Renew { run_id: self.text("runId"), token: self.number("token"), lease: self.number("leaseTtlMs") }
    }

    fn end(&self) -> End {
        match self.op.as_str() {
            "cancel" => End::cancel(self.text("runId")),
            _ => End { run_id: self.text("runId"), reason: self.text("reason"), token: self.maybe("token") },
        }
    }

    fn claim(&self, scope: &str) -> Claim {
        let modes = [ConflictMode::Any, ConflictMode::SameIntent, ConflictMode::None];
        Claim {
            scope: scope.to_owned(),
            key: self.text("key"),
            intent: self.text("intent"),
            summary: self.maybe_text("summary"),
            asker: self.maybe_text("runId").map(|run_id| Asker { run_id, token: self.maybe("token") }),
            attempt_id: self.text("attemptId"),
            conflict: modes.into_iter().find(|mode| mode.name() == self.text("conflict")).unwrap(),
            acknowledges: self.args["ack"].get() == "true",
            lease: self.number("leaseTtlMs"),
            payload: None,
            marks_point_of_no_return: false,
        }
    }

    fn settle(&self) -> Settle {
        let verdict = match self.text("outcome").as_str() {
            "committed" => Verdict::Committed,
            "failed" => Verdict::Failed,
            _ => Verdict::Ambiguous,
        };
        let (key, attempt_id) = (self.text("key"), self.text("attemptId"));
        Settle { key, attempt_id, verdict, result: self.raw("result"), error: self.maybe_text("error") }
    }

    fn resolve(&self) -> Resolve {
        let resolution = match self.text("outcome").as_str() {
            "committed" => Resolution::Committed,
            _ => Resolution::NotApplied,
        };
        let attempt_id = self.maybe_text("attemptId");
        Resolve { key: self.text("key"), resolution, result: self.raw("result"), attempt_id }
    }

    fn text(&self, name: &str) -> String {
        self.maybe_text(name).unwrap_or_else(|| panic!("{name} is missing"))
    }

    fn maybe_text(&self, name: &str) -> Option<String> {
        Some(self.raw(name)?.to_text()?.into_owned())
    }

    fn number(&self, name: &str) -> Number {
        self.maybe(name).unwrap_or_else(|| panic!("{name} is missing"))
    }

    fn maybe(&self, name: &str) -> Option<Number> {
        self.raw(name)?.to_number()
    }

    fn raw(&self, name: &str) -> Option<Raw> {
        self.args.get(name).map(|value| Raw::new(value.get()).unwrap())
    }

    /// The state the step has to leave, and its answer.
    pub(crate) fn expected(&self, before: Option<&Value>) -> Expected {
        let state = match &self.delta {
            None => before.cloned(),
            Some(delta) => {
                let empty = json!({"v": 1, "seq": 0, "tokenSeq": 0, "runs": {}, "effects": {}});
                // An empty object is no state.
                let before = before.filter(|before| **before != json!({}));
                Some(changed(before.cloned().unwrap_or(empty), delta))
            }
        };
        let out = written_out(&self.out, state.as_ref());
        Expected { state, out }
    }

    /// Whether an answer is the expected one. Earlier effects have no order; conflicts of one time have none in some steps.
    pub(crate) fn is_same(&self, is: &Value, ought: &Value) -> bool {
        let sorted = |value: &Value, list: &str| {
            let mut value = value.clone();
            if let Some(items) = value.get_mut(list).and_then(Value::as_array_mut) {
                items.sort_by_key(ToString::to_string);
            }
            value
        };
        let _ = self.order_sensitive; // maps keep their order here, so that even those are exact
        sorted(is, "priorEffects") == sorted(ought, "priorEffects")
    }
}

fn changed(mut state: Value, delta: &Value) -> Value {
    for counter in ["seq", "tokenSeq"] {
        if let Some(value) = delta.get(counter) {
            state[counter] = value.clone();
        }
    }
    for part in ["runs", "effects"] {
        let Some(changes) = delta.get(part).and_then(Value::as_object) else { continue };
        let entries = state[part].as_object_mut().unwrap();
        for (name, value) in changes {
            match value {
                Value::Null => drop(entries.remove(name)),
                value => drop(entries.insert(name.clone(), value.clone())),
            }
        }
    }
    state
}

/// `out` with its references replaced by what they stand for in `state`.
fn written_out(out: &Value, state: Option<&Value>) -> Value {
    let from = |part: &str, name: &Value| state.unwrap()[part][name.as_str().unwrap()].clone();
    match out {
        Value::Object(members) => match members.iter().next() {
            Some((name, key)) if name == "$effect" => from("effects", key),
            Some((name, id)) if name == "$run" => from("runs", id),
            Some((name, value)) if name == "$inline" => value.clone(),
            _ => members.iter().map(|(name, value)| (name.clone(), written_out(value, state))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| written_out(item, state)).collect(),
        plain => plain.clone(),
    }
}

fn answered<V>(step: Result<LawStep<V>, DocumentError>, answer: impl FnOnce(V) -> Value) -> Ran {
    match step {
        Ok(step) => (step.write, answer(step.verdict)),
        Err(DocumentError::UnknownVersion(_)) => (None, json!({"error": "unsupported_version"})),
        Err(error) => (None, json!({"error": error.to_string()})),
    }
}

fn effect_value(effect: &Effect) -> Value {
    effect.to_json().parse().unwrap()
}

fn run_value(run: &Run) -> Value {
    run.to_json().parse().unwrap()
}

fn number_value(number: Number) -> Value {
    serde_json::from_str(&number.to_string()).unwrap()
}

fn begun(answer: Begun) -> Value {
    match answer {
        Begun::Busy(busy) => json!({"state": "busy", "holder": {
            "runId": busy.run_id,
            "token": number_value(busy.token),
            "leaseExpiresAt": number_value(busy.lease_expires_at),
        }}),
        Begun::Run { state, run, prior } => {
            let prior: Vec<_> = prior.iter().map(effect_value).collect();
            let _: BeginState = state;
            json!({"state": state.name(), "run": run_value(&run), "priorEffects": prior})
        }
    }
}

fn claimed(answer: Claimed) -> Value {
    match answer {
        Claimed::Acquired(entry) => json!({"kind": "acquired", "entry": effect_value(&entry)}),
        Claimed::Replay(entry) => json!({"kind": "replay", "entry": effect_value(&entry)}),
        Claimed::InFlight(entry) => json!({"kind": "in_flight", "entry": effect_value(&entry)}),
        Claimed::Ambiguous(entry) => json!({"kind": "ambiguous", "entry": effect_value(&entry)}),
        Claimed::Refused { reason, conflicts, entry } => {
            let mut answer = json!({"kind": "refused", "reason": reason.name()});
            if conflicts.total > 0 {
                let listed = conflicts.listed.iter().map(|conflict| {
                    json!({
                        "key": conflict.key,
                        "intent": conflict.intent,
                        "status": conflict.status.name(),
                        "runId": conflict.run_id,
                        "summary": conflict.summary,
                        "at": number_value(conflict.at),
                    })
                });
                answer["conflicts"] = listed.collect();
            }
            if let Some(entry) = entry {
                answer["entry"] = effect_value(&entry);
            }
            answer
        }
    }
}
