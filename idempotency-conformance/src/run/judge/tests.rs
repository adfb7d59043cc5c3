use serde_json::json;

use super::*;
use crate::run::Options;

/// In which ways an answer is not what was expected.
fn wrong(expect: Value, answer: &Answer) -> Vec<String> {
    let expect: Expect = serde_json::from_value(expect).unwrap();
    let words = Words::new("core/a", &Options::default(), 1);
    let earlier = HashMap::from([("first".to_owned(), answer_of("1"))]);
    Bench { words: &words, earlier: &earlier }.judge(&expect, answer)
}

fn answer_of(body: &str) -> Answer {
    Answer {
        status: 201,
        fields: [("X-Multi", "one"), ("x-multi", "two"), ("Content-Length", "1"), ("Retry-After", "30")]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .to_vec(),
        body: body.into(),
        is_whole: true,
        first_byte: Some(std::time::Duration::from_millis(50)),
        took: std::time::Duration::from_millis(100),
        ..Answer::default()
    }
}

#[test]
fn what_is_so_passes() {
    for expect in [
        json!({}),
        json!({ "status": 201 }),
        json!({ "status": [200, 201] }),
        json!({ "status": "2xx" }),
        json!({ "headers": { "x-multi": "one, two", "Etag": null } }),
        json!({ "headers": { "X-MULTI": { "lines": ["one", "two"] } } }),
        json!({ "headers": { "X-Multi": { "same_as": "first" }, "Retry-After": { "between": [1, 30] } } }),
        json!({ "headers": { "Retry-After": { "matches": "^[1-9][0-9]*$" }, "x-multi": { "present": true } } }),
        json!({ "body": "1" }),
        json!({ "body": { "base64": "MQ==" } }),
        json!({ "body": { "same_as": "first" } }),
        json!({ "body": { "length": 1 } }),
        json!({ "replayed": false, "framing_fields": 1, "interim": [] }),
        json!({ "within_ms": 100, "no_sooner_than_ms": 100, "first_byte_within_ms": "5% lease" }),
        json!({ "any_of": [{ "status": 422 }, { "body": "1" }] }),
    ] {
        assert_eq!(wrong(expect.clone(), &answer_of("1")), [""; 0], "{expect}");
    }
}

#[test]
fn what_is_not_so_is_said() {
    for (expect, said) in [
        (json!({ "status": 200 }), "status: expected 200, got 201"),
        (json!({ "status": [409, 422] }), "status: expected 409 or 422, got 201"),
        (json!({ "status": "5xx" }), "status: expected 5xx, got 201"),
        (json!({ "headers": { "ETag": "a" } }), "header etag: expected \"a\", got nothing"),
        (json!({ "headers": { "X-Multi": null } }), "header x-multi: expected nothing, got \"one, two\""),
        (
            json!({ "headers": { "X-Multi": { "lines": ["one, two"] } } }),
            "header x-multi: expected the lines [\"one, two\"], got \"one, two\"",
        ),
        (
            json!({ "headers": { "Retry-After": { "between": [1, 29] } } }),
            "header retry-after: expected a number from 1 to 29, got \"30\"",
        ),
        (json!({ "body": "2" }), "body: expected \"2\", got \"1\""),
        (
            json!({ "body": { "differs_from": "first" } }),
            "body: expected another one than in \"first\", got \"1\"",
        ),
        (json!({ "body": { "length": 2 } }), "body: expected 2 bytes, got 1"),
        (json!({ "json": { "code": "a" } }), "body: expected a JSON object, got \"1\""),
        (json!({ "replayed": true }), "header idempotency-replayed: expected \"true\", got nothing"),
        (json!({ "problem": true }), "header content-type: expected application/problem+json, got \"\""),
        (
            json!({ "documented": true }),
            "documentation: expected a Link field or a link in the body, got neither",
        ),
        (json!({ "bodiless": true }), "header content-length: expected nothing"),
        (json!({ "framing_fields": 0 }), "fields that delimit the body: expected 0, got 1"),
        (json!({ "whole": false }), "body: expected it cut off, got it whole"),
        (json!({ "interim": [100] }), "interim answers: expected [100], got []"),
        (json!({ "within_ms": 99 }), "time: expected at most 99 ms, got 100"),
        (json!({ "no_sooner_than_ms": 101 }), "time: expected at least 101 ms, got 100"),
        (
            json!({ "first_byte_within_ms": 49 }),
            "first byte of the body: expected within 49 ms, got it after 50",
        ),
        (
            json!({ "any_of": [{ "status": 422 }, { "body": "2" }] }),
            "none of 2 is so: (status: expected 422, got 201) or (body: expected \"2\", got \"1\")",
        ),
    ] {
        assert_eq!(wrong(expect, &answer_of("1")), [said]);
    }
}

#[test]
fn a_problem_document_has_its_members() {
    let mut answer = answer_of(r#"{"type":"https://a.example/b","title":"B","status":201,"code":"b"}"#);
    answer.fields.push(("Content-Type".to_owned(), "Application/Problem+JSON; charset=utf-8".into()));
    let demands = json!({ "problem": true, "documented": true, "json": { "code": "b" } });
    assert_eq!(wrong(demands, &answer), [""; 0]);
    assert_eq!(wrong(json!({ "json": { "code": "c" } }), &answer), ["body.code: expected \"c\", got \"b\""]);
    answer.body = br#"{"status":400,"title":1}"#.to_vec();
    let said = ["body.status: expected 201, got 400", "body.type: expected a text, got null"];
    assert_eq!(wrong(json!({ "problem": true }), &answer)[..2], said);
}

#[test]
fn an_answer_that_is_cut_off_is_never_silently_taken() {
    let answer = Answer { is_whole: false, ..answer_of("1") };
    assert_eq!(wrong(json!({}), &answer), ["body: expected it whole, got it cut off"]);
    assert_eq!(wrong(json!({ "whole": false }), &answer), [""; 0]);
}
