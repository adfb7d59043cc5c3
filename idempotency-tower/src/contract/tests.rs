use std::time::Duration;

use bytes::Bytes;
use http::Response;
use idempotency_core::profile::http::Refusal;

use super::*;
use crate::PolicyBuilder;

fn route(builder: PolicyBuilder) -> Value {
    let policy = builder.build().unwrap();
    let document = Contract::new().route("/orders", &policy).document();
    assert_eq!(document["specification"]["version"], "07");
    document["routes"][0].clone()
}

fn codes(builder: PolicyBuilder) -> Vec<&'static str> {
    let promise = builder.build().unwrap().promise().unwrap();
    promise.codes().into_iter().map(Code::name).collect()
}

#[test]
fn the_default_policy_reads_as_its_documentation() {
    let conflict = json!({
        "answer": "refuse", "status": 409, "code": "conflict", "retry_after_at_most": "PT30S",
    });
    let route = route(Policy::builder());
    assert_eq!(route["path"], "/orders");
    assert_eq!(route["methods"], json!(["POST", "PATCH"]));
    assert_eq!(route["key"]["header"], "idempotency-key");
    assert_eq!(route["key"]["required"], false);
    assert_eq!(route["key"]["syntax"], "lenient");
    assert_eq!(route["key"]["scope"], "credentials");
    assert_eq!(route["key"]["missing"], json!({ "answer": "run-unguarded" }));
    assert_eq!(route["retention"], "P1D");
    assert_eq!(route["statuses"]["kept"], json!(["2XX", "3XX", "4XX"]));
    assert_eq!(route["statuses"]["in_doubt"], json!([]));
    assert_eq!(route["in_flight"], conflict);
    assert_eq!(route["mismatch"]["other_credentials"]["code"], "credentials-mismatch");
    assert_eq!(route["expired"], json!({ "answer": "run" }));
    assert_eq!(route["lapsed"], json!({ "answer": "run" }));
    assert_eq!(route["oversized"]["code"], "result-not-replayable");
    assert_eq!(route["store_down"]["status"], 503);
    assert_eq!(route["problems"]["codes"]["fingerprint-mismatch"], 422);
    assert_eq!(route["problems"]["media_type"], "application/problem+json");
}

#[test]
fn every_option_that_callers_can_meet_is_told() {
    assert_eq!(route(Policy::builder().fail_open())["store_down"]["answer"], "run");
    let route = route(
        Policy::builder()
            .methods([Method::PUT])
            .header(HeaderName::from_static("x-key"))
            .key_syntax(KeySyntax::Strict)
            .required()
            .scope(|_| None)
            .max_request_bytes(10)
            .max_response_bytes(20)
            .oversized(Oversized::OmitBody)
            .on_server_error(OnServerError::Hold)
            .on_lapse(OnLapse::Hold)
            .retention(Duration::from_secs(90))
            .reject_expired_keys_for(Duration::from_secs(3_600))
            .wait(Duration::from_millis(1_500))
            .retry_after_cap(Duration::from_secs(4))
            .replayed_header(HeaderName::from_static("x-replayed"))
            .problem_base("https://shop.example/problems/")
            .docs_url("https://shop.example/keys"),
    );
    assert_eq!(route["methods"], json!(["PUT"]));
    assert_eq!(route["key"]["header"], "x-key");
    assert_eq!(route["key"]["syntax"], "strict");
    assert_eq!(route["key"]["scope"], "principal");
    assert_eq!(route["key"]["missing"], json!({ "answer": "refuse", "status": 400, "code": "missing-key" }));
    assert_eq!(route["request"]["max_bytes"], 10);
    assert_eq!(route["oversized"]["max_bytes"], 20);
    assert_eq!(route["oversized"]["answer"], "omit-body");
    assert_eq!(route["statuses"]["in_doubt"], json!(["408", "5XX"]));
    assert_eq!(route["lapsed"]["code"], "outcome-unknown");
    assert_eq!(route["retention"], "PT1M30S");
    assert_eq!(route["expired"]["for"], "PT1H");
    assert_eq!(route["in_flight"]["answer"], "wait");
    assert_eq!(route["in_flight"]["wait_at_most"], "PT1.5S");
    assert_eq!(route["in_flight"]["retry_after_at_most"], "PT4S");
    assert_eq!(route["replay"]["header"], "x-replayed");
    assert_eq!(route["mismatch"].get("other_credentials"), None);
    assert_eq!(route["problems"]["type_base"], "https://shop.example/problems/");
    assert_eq!(route["problems"]["docs"], "https://shop.example/keys");
}

#[test]
fn only_refusals_that_the_policy_can_give_are_listed() {
    let plain = codes(Policy::builder());
    for code in ["missing-key", "missing-principal", "key-expired"] {
        assert!(!plain.contains(&code), "{code}");
    }
    for code in ["credentials-mismatch", "result-not-replayable", "store-unavailable", "conflict"] {
        assert!(plain.contains(&code), "{code}");
    }
    assert!(codes(Policy::builder().required()).contains(&"missing-key"));
    assert!(
        codes(Policy::builder().reject_expired_keys_for(Duration::from_secs(1))).contains(&"key-expired")
    );
    let scoped = codes(Policy::builder().scope(|_| None));
    assert!(scoped.contains(&"missing-principal") && !scoped.contains(&"credentials-mismatch"));
    let fallback = codes(Policy::builder().scope(|_| None).or_shared());
    assert!(!fallback.contains(&"missing-principal") && fallback.contains(&"credentials-mismatch"));
    assert!(!codes(Policy::builder().shared_by_all_callers()).contains(&"credentials-mismatch"));
    assert!(!codes(Policy::builder().fail_open()).contains(&"store-unavailable"));
    assert!(!codes(Policy::builder().oversized(Oversized::OmitBody)).contains(&"result-not-replayable"));
}

#[test]
fn a_policy_in_the_shadow_promises_nothing() {
    let policy = Policy::builder().in_the_shadow().build().unwrap();
    assert_eq!(policy.promise(), None);
    assert_eq!(Contract::new().route("/orders", &policy).document()["routes"], json!([]));
}

#[test]
fn refusals_of_the_services_own_are_not_said_to_be_problem_documents() {
    let route = route(Policy::builder().render(|_: &Refusal| Response::new(Bytes::new())));
    assert_eq!(route["problems"].get("media_type"), None);
    assert_eq!(route["problems"]["codes"]["conflict"], 409);
}
