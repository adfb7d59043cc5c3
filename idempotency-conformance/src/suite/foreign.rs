//! The first schema that such vectors were published in, read as steps of this one.
//!
//! A step that later ones run beside is started, and awaited together with them: first all answers, then the judging,
//! then the count of runs, which is one number for all of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::vector::{
    self, Asked, Await, BodyRule, BodyShape, Bytes, Capability, Expect, FieldRule, FieldShape, Kind, Number,
    Request, Runs, Start, StatusRule, Step, Tier,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Vector {
    id: String,
    tier: Tier,
    title: String,
    draft_ref: Option<String>,
    description: String,
    #[serde(default)]
    requires: Vec<Capability>,
    /// Which page it is about. For readers.
    #[serde(rename = "fixture")]
    _fixture: String,
    steps: Vec<ForeignStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ForeignStep {
    id: String,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    concurrent_with: Vec<String>,
    request: ForeignRequest,
    expect: ForeignExpect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignRequest {
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ForeignExpect {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, ForeignField>,
    body_equals: Option<ForeignBody>,
    #[serde(default)]
    body_json: BTreeMap<String, Value>,
    body_bytes: Option<usize>,
    handler_invocations: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ForeignField {
    Exactly(String),
    Present { present: bool },
    Absent { absent: bool },
    Matches { regex: String },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ForeignBody {
    Exactly(String),
    Same {
        #[serde(rename = "sameAs")]
        same_as: String,
    },
}

impl From<Vector> for vector::Vector {
    fn from(foreign: Vector) -> Self {
        let beside: BTreeSet<String> =
            foreign.steps.iter().flat_map(|step| step.concurrent_with.iter().cloned()).collect();
        let mut pending = BTreeMap::new();
        let mut steps = Vec::new();
        for step in foreign.steps {
            if step.concurrent_with.is_empty() {
                settle(std::mem::take(&mut pending).into_values().collect(), &mut steps);
            }
            if step.delay_ms > 0 {
                steps.push(Step::WaitMs(Number::Plain(step.delay_ms)));
            }
            let ForeignStep { id, concurrent_with, request, expect, .. } = step;
            steps.push(Step::Start(Start { name: id.clone(), request: request.into(), parallel: 1 }));
            if beside.contains(&id) {
                pending.insert(id.clone(), (id, expect));
                continue;
            }
            // A partner that is not pending stays in the list: its answer is then missing, which is an error.
            let mut group: Vec<_> =
                concurrent_with.iter().filter_map(|partner| pending.remove(partner)).collect();
            group.push((id, expect));
            settle(group, &mut steps);
        }
        settle(pending.into_values().collect(), &mut steps);
        Self {
            id: foreign.id,
            tier: foreign.tier,
            kind: if foreign.draft_ref.is_some() { Kind::Normative } else { Kind::Profile },
            section: foreign.draft_ref.map(|section| section.trim_start_matches("section-").to_owned()),
            title: foreign.title,
            description: foreign.description,
            requires: foreign.requires,
            unless: Vec::new(),
            catches: Vec::new(),
            repeat: 1,
            resets: true,
            requests: BTreeMap::new(),
            steps,
        }
    }
}

/// Awaits a group: all of its answers, then the count.
fn settle(group: Vec<(String, ForeignExpect)>, steps: &mut Vec<Step>) {
    let runs: Vec<u64> = group.iter().filter_map(|(_, expect)| expect.handler_invocations).collect();
    for (answer, expect) in group {
        steps.push(Step::Await(Await { answer, expect: expect.into() }));
    }
    steps.extend(runs.into_iter().map(|runs| Step::Runs(Runs::Exactly(runs))));
}

impl From<ForeignRequest> for Asked {
    fn from(foreign: ForeignRequest) -> Self {
        let mut request = Request { method: Some(foreign.method), path: foreign.path, ..Request::default() };
        // Not as a key: its spelling is the vector's.
        request.headers =
            foreign.headers.into_iter().map(|(name, value)| (name, Bytes::Text(value))).collect();
        request.body = foreign.body.map(Bytes::Text);
        request.is_foreign = true;
        Self::Written(Box::new(request))
    }
}

impl From<ForeignExpect> for Expect {
    fn from(foreign: ForeignExpect) -> Self {
        let body = foreign.body_equals.map(|body| match body {
            ForeignBody::Exactly(text) => BodyRule::Exactly(Bytes::Text(text)),
            ForeignBody::Same { same_as } => BodyRule::Rule(BodyShape::SameAs(same_as)),
        });
        let length = foreign.body_bytes.map(|bytes| BodyRule::Rule(BodyShape::Length(bytes)));
        let headers = foreign.headers.into_iter().map(|(name, field)| (name, field.into())).collect();
        Self {
            status: Some(StatusRule::One(foreign.status)),
            headers,
            body,
            json: foreign.body_json,
            // One of one: both rules for a body hold.
            any_of: vec![Self { body: length, ..Self::default() }],
            ..Self::default()
        }
    }
}

impl From<ForeignField> for FieldRule {
    fn from(foreign: ForeignField) -> Self {
        match foreign {
            ForeignField::Exactly(text) => Self::Exactly(text),
            ForeignField::Present { present } => Self::Rule(FieldShape::Present(present)),
            ForeignField::Absent { absent: true } => Self::Absent,
            ForeignField::Absent { absent: false } => Self::Rule(FieldShape::Present(true)),
            ForeignField::Matches { regex } => Self::Rule(FieldShape::Matches(regex)),
        }
    }
}
