//! The schema and the vectors fit each other, and the schema refuses what the runner would not understand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{fs, path::Path};

use boon::{Compiler, SchemaIndex, Schemas};
use idempotency_conformance::vector::Vector;
use serde_json::{Value, json};

const ADDRESS: &str = "https://vector.example/v2";

fn compiled() -> (Schemas, SchemaIndex) {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/vector-v2.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    schema["$id"] = ADDRESS.into();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(ADDRESS, schema).unwrap();
    let index = compiler.compile(ADDRESS, &mut schemas).unwrap();
    (schemas, index)
}

#[test]
fn every_vector_is_what_the_schema_says() {
    let (schemas, index) = compiled();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut looked_at = 0;
    for tier in ["core", "profile", "attack"] {
        for file in fs::read_dir(folder.join(tier)).unwrap() {
            let path = file.unwrap().path();
            let vector: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            if let Err(error) = schemas.validate(&vector, index) {
                panic!("{}: {error:#}", path.display());
            }
            looked_at += 1;
        }
    }
    assert!(looked_at > 0, "nothing was looked at");
}

#[test]
fn what_the_runner_does_not_understand_the_schema_refuses_too() {
    let (schemas, index) = compiled();
    let vector = json!({
        "id": "core/a", "tier": "core", "kind": "implied", "section": "2.6", "title": "A", "description": "B",
        "catches": ["c"], "steps": [{ "send": { "as": "a", "request": { "path": "/" }, "expect": { "status": 200 } } }]
    });
    assert!(schemas.validate(&vector, index).is_ok());
    assert!(serde_json::from_value::<Vector>(vector.clone()).is_ok());
    for (at, wrong) in [
        ("/tier", json!("basic")),
        ("/kind", json!("must")),
        ("/steps", json!([{ "sleep": 1 }])),
        ("/catches", json!("c")),
        ("/steps/0/send/request", json!({ "path": "/", "retries": 1 })),
        ("/steps/0/send/request", json!({ "path": "/", "framing": "none" })),
        ("/steps/0/send/expect", json!({ "states": 200 })),
        ("/steps/0/send/expect", json!({ "headers": { "A": { "equals": "b" } } })),
        ("/steps/0/send/expect", json!({ "body": { "like": "b" } })),
        ("/steps", json!([{ "wait_ms": "5 seconds" }])),
        ("/steps", json!([{ "runs": { "at_least": 1 } }])),
    ] {
        let mut broken = vector.clone();
        *broken.pointer_mut(at).unwrap() = wrong.clone();
        assert!(schemas.validate(&broken, index).is_err(), "the schema takes {wrong} at {at}");
        assert!(serde_json::from_value::<Vector>(broken).is_err(), "the runner takes {wrong} at {at}");
    }
}
