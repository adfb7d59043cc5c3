//! OpenAPI documents: what a policy adds to them, and what it leaves alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use idempotency_axum::{
    Policy,
    openapi::{self, Undescribed},
};
use serde_json::{Value, json};

fn document(operation: &Value) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Shop", "version": "1" },
        "paths": { "/orders": { "get": { "responses": {} }, "post": operation } },
    })
}

/// The POST operation of `document` under `policy`.
fn described(document: &mut Value, policy: &Policy) -> Value {
    openapi::describe(document, "/orders", policy).unwrap();
    document["paths"]["/orders"]["post"].clone()
}

fn codes(operation: &Value, status: &str) -> Value {
    let content = &operation["responses"][status]["content"]["application/problem+json"];
    content["schema"]["allOf"][1]["properties"]["code"]["enum"].clone()
}

fn strict() -> Policy {
    let second = Duration::from_secs(1);
    let policy = Policy::builder().required().scope(|_| None).reject_expired_keys_for(second).wait(second);
    policy.docs_url("https://shop.example/keys").build().unwrap()
}

#[test]
fn the_default_policy_adds_the_key_the_marker_and_its_refusals() {
    let mut document = document(&json!({ "responses": { "201": { "description": "The order" } } }));
    let get = document["paths"]["/orders"]["get"].clone();
    let order = described(&mut document, &Policy::default());
    let key = &order["parameters"][0];
    assert_eq!(order["parameters"].as_array().unwrap().len(), 1);
    assert_eq!((&key["name"], &key["in"]), (&json!("idempotency-key"), &json!("header")));
    assert_eq!(key["required"], false);
    assert_eq!(key["schema"], json!({ "type": "string", "minLength": 1, "maxLength": 255 }));
    assert_eq!(order["responses"]["201"]["description"], "The order");
    let marker = &order["responses"]["201"]["headers"]["idempotency-replayed"];
    assert_eq!(marker["schema"]["enum"], json!(["true"]));
    let statuses: Vec<_> = order["responses"].as_object().unwrap().keys().collect();
    assert_eq!(statuses, ["201", "400", "409", "413", "422", "503"]);
    assert_eq!(codes(&order, "400"), json!(["invalid-key", "unreadable-body"]));
    assert_eq!(codes(&order, "409"), json!(["conflict", "outcome-unknown", "result-not-replayable"]));
    assert_eq!(codes(&order, "422"), json!(["fingerprint-mismatch", "credentials-mismatch"]));
    assert_eq!(order["responses"]["503"]["headers"]["retry-after"]["schema"]["minimum"], 1);
    assert_eq!(order["responses"]["422"].get("headers"), None);
    let schema = &document["components"]["schemas"]["IdempotencyProblem"];
    assert!(schema["required"].as_array().unwrap().contains(&json!("code")));
    assert_eq!(document["paths"]["/orders"]["get"], get, "a GET is not guarded");
}

#[test]
fn a_policy_adds_what_its_options_mean() {
    let mut document = document(&json!({ "responses": { "200": { "description": "It" } } }));
    let order = described(&mut document, &strict());
    assert_eq!(order["parameters"][0]["required"], true);
    assert_eq!(order["parameters"][1]["name"], "prefer");
    assert!(order["responses"]["200"]["headers"]["preference-applied"].is_object());
    assert_eq!(codes(&order, "400"), json!(["missing-key", "invalid-key", "unreadable-body"]));
    assert_eq!(codes(&order, "403"), json!(["missing-principal"]));
    assert_eq!(codes(&order, "410"), json!(["key-expired"]));
    assert_eq!(codes(&order, "422"), json!(["fingerprint-mismatch"]));
    assert!(order["responses"]["422"]["headers"]["link"].is_object());
}

#[test]
fn what_the_document_says_stays() {
    let own = json!({
        "parameters": [{ "$ref": "#/components/parameters/Key" }],
        "responses": {
            "201": { "$ref": "#/components/responses/Made" },
            "409": {
                "description": "Sold out",
                "headers": { "Retry-After": { "description": "Mine" } },
                "content": { "application/json": { "schema": { "type": "string" } } },
            },
            "422": { "$ref": "https://elsewhere.example/errors.json" },
            "4XX": { "description": "Wrong in some way", "content": { "text/plain": {} } },
        },
    });
    let mut document = document(&own);
    document["components"] = json!({
        "parameters": { "Key": { "name": "IDEMPOTENCY-KEY", "in": "header", "description": "Mine" } },
        "responses": { "Made": { "description": "Made" } },
        "schemas": { "IdempotencyProblem": { "description": "Mine" } },
    });
    let components = document["components"].clone();
    let order = described(&mut document, &Policy::default());
    assert_eq!(document["components"], components);
    assert_eq!(order["parameters"], own["parameters"]);
    assert_eq!(order["responses"]["201"]["description"], "Made");
    assert!(order["responses"]["201"]["headers"]["idempotency-replayed"].is_object());
    let conflict = &order["responses"]["409"];
    assert_eq!(conflict["description"], "Sold out");
    assert_eq!(conflict["headers"]["Retry-After"]["description"], "Mine");
    assert_eq!(conflict["headers"].get("retry-after"), None);
    assert_eq!(
        conflict["content"]["application/json"],
        own["responses"]["409"]["content"]["application/json"]
    );
    assert_eq!(codes(&order, "409")[0], "conflict");
    assert_eq!(order["responses"]["422"], own["responses"]["422"], "out of reach");
    assert_eq!(order["responses"]["400"]["description"], "Wrong in some way");
    assert!(order["responses"]["400"]["content"]["text/plain"].is_object());
    assert_eq!(codes(&order, "400")[0], "invalid-key");
}

#[test]
fn parameters_of_the_whole_path_count() {
    let mut document = document(&json!({ "responses": {} }));
    let key = json!([{ "name": "Idempotency-Key", "in": "header" }]);
    document["paths"]["/orders"]["parameters"] = key.clone();
    assert_eq!(described(&mut document, &Policy::default())["parameters"], json!([]));
    assert_eq!(document["paths"]["/orders"]["parameters"], key);
}

#[test]
fn a_second_call_changes_nothing() {
    let mut document = document(&json!({ "responses": { "default": { "description": "Anything" } } }));
    described(&mut document, &strict());
    let once = document.clone();
    described(&mut document, &strict());
    assert_eq!(document, once);
}

#[test]
fn only_what_is_kept_carries_the_marker() {
    let answer = json!({ "description": "It" });
    let mut document = document(&json!({
        "responses": { "2XX": answer, "401": answer, "404": answer, "500": answer, "default": answer },
    }));
    let order = described(&mut document, &Policy::default());
    let marked = |status: &str| order["responses"][status]["headers"].get("idempotency-replayed").is_some();
    for (status, expected) in
        [("2XX", true), ("404", true), ("default", true), ("401", false), ("500", false)]
    {
        assert_eq!(marked(status), expected, "{status}");
    }
}

#[test]
fn what_cannot_be_described_leaves_the_document_as_it_was() {
    let mut document = document(&json!({ "responses": [] }));
    let before = document.clone();
    let undescribed =
        |document: &mut Value, path, policy| openapi::describe(document, path, policy).unwrap_err();
    let put = Policy::builder().methods([http::Method::PUT]).build().unwrap();
    let default = Policy::default();
    assert!(matches!(undescribed(&mut document, "/order", &default), Undescribed::NoPath(_)));
    assert!(matches!(undescribed(&mut document, "/orders", &put), Undescribed::NoOperation(_)));
    let malformed = undescribed(&mut document, "/orders", &default);
    assert!(matches!(malformed, Undescribed::Malformed("responses")));
    assert!(matches!(undescribed(&mut Value::Null, "/orders", &default), Undescribed::NoPath(_)));
    assert_eq!(document, before);
}

#[test]
fn a_policy_in_the_shadow_describes_nothing() {
    let mut document = document(&json!({ "responses": {} }));
    let before = document.clone();
    described(&mut document, &Policy::builder().in_the_shadow().build().unwrap());
    assert_eq!(document, before);
}

#[test]
fn a_document_of_utoipa_says_the_same() {
    let mut json = document(&json!({
        "operationId": "order",
        "requestBody": { "content": { "application/json": { "schema": { "type": "object" } } } },
        "responses": { "201": { "description": "The order" } },
    }));
    let mut typed: utoipa::openapi::OpenApi = serde_json::from_value(json.clone()).unwrap();
    openapi::describe(&mut json, "/orders", &strict()).unwrap();
    openapi::utoipa::describe(&mut typed, "/orders", &strict()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), json);
    assert!(openapi::utoipa::describe(&mut typed, "/order", &strict()).is_err());
}
