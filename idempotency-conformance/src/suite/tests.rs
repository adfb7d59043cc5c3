use std::path::Path;

use serde_json::json;

use super::*;

#[test]
fn the_list_and_the_folder_hold_the_same_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let read = Suite::read(&folder).unwrap();
    let ids = |suite: &Suite| suite.vectors.iter().map(|vector| vector.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&read), ids(&Suite::own()));
}

#[test]
fn an_id_is_the_path_of_its_file_and_names_its_tier() {
    for (path, text) in own::FILES {
        let vector: Vector = serde_json::from_str(text).unwrap();
        assert_eq!(vector.id, *path);
        assert!(vector.id.starts_with(vector.tier.as_str()), "{path}");
    }
}

#[test]
fn every_vector_of_the_core_cites_its_section() {
    for vector in Suite::own().vectors {
        assert!(vector.tier != crate::vector::Tier::Core || vector.section.is_some(), "{}", vector.id);
    }
}

#[test]
fn every_request_that_a_step_names_is_there() {
    for vector in Suite::own().vectors {
        assert_eq!(unnamed(&vector), None, "{}", vector.id);
    }
}

#[test]
fn every_answer_that_a_step_wants_is_there_by_then() {
    for vector in Suite::own().vectors {
        assert_eq!(unanswered(&vector), None, "{}", vector.id);
    }
}

#[test]
fn an_answer_that_comes_later_or_never_is_missed() {
    let mut vector = Suite::own().vectors.remove(0);
    let mut missing = |steps: serde_json::Value| {
        vector.steps = serde_json::from_value(steps).unwrap();
        unanswered(&vector).map(str::to_owned)
    };
    let send = |name: &str, expect: serde_json::Value| json!({ "send": { "as": name, "request": { "path": "/" }, "expect": expect } });
    let a = send("a", json!({}));
    for expect in [
        json!({ "body": { "same_as": "a" } }),
        json!({ "body": { "differs_from": "a" } }),
        json!({ "headers": { "ETag": { "same_as": "a" } } }),
        json!({ "any_of": [{ "status": 200 }, { "body": { "same_as": "a" } }] }),
    ] {
        assert_eq!(missing(json!([send("b", expect.clone()), a])).as_deref(), Some("a"), "{expect}");
        assert_eq!(missing(json!([a, send("b", expect.clone())])), None, "{expect}");
        let race = json!({ "race": { "as": "c", "entrants": [], "each": expect } });
        assert_eq!(missing(json!([race])).as_deref(), Some("a"));
    }
    let start = json!({ "start": { "as": "a", "request": { "path": "/" } } });
    let awaited = json!({ "await": { "answer": "a" } });
    let agree = json!({ "agree": { "answers": ["a"] } });
    assert_eq!(missing(json!([start, awaited, agree])), None);
    for steps in
        [json!([awaited]), json!([start, awaited, awaited]), json!([start, agree]), json!([a, awaited])]
    {
        assert_eq!(missing(steps.clone()).as_deref(), Some("a"), "{steps}");
    }
}
