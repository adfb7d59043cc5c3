//! Every promise of the contract and of the OpenAPI document, provoked and compared.
//!
//! Each answer that the tests get is looked up in the OpenAPI document as well: its status, its code, its marker.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod site;

use axum::http::StatusCode;
use serde_json::{Value, json};
use site::{Ask, Site, seconds};

/// For each route: a request that succeeds, and another one.
fn bodies(path: &str) -> (&'static str, &'static str) {
    match path {
        "/comments" => (r#"{"text":"yes"}"#, r#"{"text":"no"}"#),
        "/payments" => (r#"{"amount":5}"#, r#"{"amount":6}"#),
        "/exports" => ("[1,2]", "[3]"),
        path => panic!("the contract has a route the tests do not know: {path}"),
    }
}

fn ask(route: &Value) -> (Ask, Ask) {
    let path = route["path"].as_str().unwrap();
    let (one, other) = bodies(path);
    (Ask::new(path, one), Ask::new(path, other))
}

#[tokio::test]
async fn the_documents_speak_of_the_same_routes_and_the_draft() {
    let site = Site::open().await;
    assert_eq!(site.contract["specification"]["version"], "07");
    let paths: Vec<_> = site.routes().iter().map(|route| route["path"].clone()).collect();
    assert_eq!(paths, ["/comments", "/payments", "/exports"]);
    for route in site.routes() {
        let operation = &site.openapi["paths"][route["path"].as_str().unwrap()]["post"];
        let key = operation["parameters"].as_array().unwrap().iter();
        let key = key.clone().find(|parameter| parameter["name"] == route["key"]["header"]).unwrap();
        assert_eq!(key["required"], route["key"]["required"]);
        assert_eq!(key["schema"]["maxLength"], route["key"]["max_length"]);
        for (code, status) in route["problems"]["codes"].as_object().unwrap() {
            let described = site.describes(route["path"].as_str().unwrap(), &status.to_string(), code);
            assert_eq!(described, status != 500, "{code} of {}", route["path"]);
        }
    }
}

#[tokio::test]
async fn a_request_without_a_key_is_answered_as_promised() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        let (request, _) = ask(&route);
        let answer = site.send(&request).await;
        if route["key"]["required"] == true {
            answer.is(&route["key"]["missing"]);
        } else {
            assert_eq!(route["key"]["missing"]["answer"], "run-unguarded");
            assert!(answer.status.is_success() && !answer.replayed);
        }
        site.send(&request.key("\"unterminated")).await.is(&route["key"]["invalid"]);
        let longest = route["key"]["max_length"].as_u64().unwrap().try_into().unwrap();
        assert!(site.send(&ask(&route).0.key(&"k".repeat(longest))).await.status.is_success());
        site.send(&ask(&route).0.key(&"k".repeat(longest + 1))).await.is(&route["key"]["invalid"]);
    }
}

#[tokio::test]
async fn a_retry_is_a_replay_and_another_request_a_mismatch() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        let (one, other) = ask(&route);
        let first = site.send(&one.key("r")).await;
        assert!(first.status.is_success() && !first.replayed, "{first:?}");
        let again = site.send(&one.key("r")).await;
        assert_eq!((again.status, again.replayed, &again.text), (first.status, true, &first.text));
        assert_eq!(again.header(route["replay"]["header"].as_str().unwrap()), "true");
        site.send(&other.key("r")).await.is(&route["mismatch"]);
        // Each principal, or set of credentials, is alone with its keys.
        let foreign = site.send(&one.key("r").from("bob")).await;
        match route["mismatch"].get("other_credentials") {
            Some(promised) => foreign.is(promised),
            None => {
                assert_eq!(route["key"]["scope"], "principal");
                assert!(foreign.status.is_success() && !foreign.replayed);
            }
        }
    }
}

#[tokio::test]
async fn a_payment_of_nobody_is_refused() {
    let site = Site::open().await;
    let answer = site.send(&Ask::new("/payments", r#"{"amount":5}"#).key("k").anonymous()).await;
    answer.is(&json!({ "answer": "refuse", "status": 403, "code": "missing-principal" }));
}

#[tokio::test]
async fn a_copy_of_a_running_request_is_refused_or_waits_as_promised() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        let (request, _) = ask(&route);
        let request = request.key("k");
        let promised = &route["in_flight"];
        let books = site.books.lock().await; // the handler waits for them
        let mut first = Box::pin(site.send(&request));
        site.until(&mut first, |site| site.layers.comments.live_runs() == 1).await;

        let impatient = site.send(&request.prefer("wait=0")).await;
        impatient.is(&json!({ "answer": "refuse", "status": promised["status"], "code": promised["code"] }));
        let retry_after: u64 = impatient.header("retry-after").parse().unwrap();
        assert!((1..=seconds(&promised["retry_after_at_most"])).contains(&retry_after), "{retry_after}");

        if promised["answer"] == "wait" {
            assert_eq!(impatient.header("preference-applied"), "wait=0");
            let mut second = Box::pin(site.send(&request));
            site.until(&mut second, |site| site.layers.comments.waiters() == 1).await;
            drop(books);
            let (first, second) = tokio::join!(first, second);
            assert!(!first.replayed && second.replayed);
            assert_eq!(first.text, second.text);
        } else {
            assert_eq!(promised["answer"], "refuse");
            drop(books);
            assert!(first.await.status.is_success());
        }
        assert_eq!(site.books.lock().await.len(), 1, "{}", route["path"]);
    }
}

#[tokio::test]
async fn a_key_expires_as_promised() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        let (one, other) = ask(&route);
        let (one, other) = (one.key("k"), other.key("k"));
        site.send(&one).await;
        site.clock.advance(seconds(&route["retention"]) - 1);
        assert!(site.send(&one).await.replayed);
        site.clock.advance(2);
        let expired = &route["expired"];
        if expired["answer"] == "refuse" {
            site.send(&one).await.is(expired);
            site.clock.advance(seconds(&expired["for"]) - 3);
            site.send(&one).await.is(expired);
            site.clock.advance(3);
            assert_eq!(expired["then"], "run");
        }
        let anew = site.send(&other).await;
        assert!(anew.status.is_success() && !anew.replayed, "{anew:?}");
    }
}

#[tokio::test]
async fn statuses_keep_and_release_the_key_as_promised() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        assert!(route["statuses"]["kept"].as_array().unwrap().contains(&json!("2XX")));
        assert!(route["statuses"]["released"].as_array().unwrap().contains(&json!("415")));
        let (request, _) = ask(&route);
        let unread = site.send(&request.key("k").content_type("text/plain")).await;
        assert_eq!(unread.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let mended = site.send(&ask(&route).0.key("k")).await;
        assert!(mended.status.is_success() && !mended.replayed);
    }
}

#[tokio::test]
async fn a_payment_whose_bank_did_not_answer_is_in_doubt() {
    let site = Site::open().await;
    let route = site.routes().into_iter().find(|route| route["path"] == "/payments").unwrap();
    assert!(route["statuses"]["in_doubt"].as_array().unwrap().contains(&json!("5XX")));
    let request = Ask::new("/payments", r#"{"amount":1000001}"#).key("k");
    assert_eq!(site.send(&request).await.status, StatusCode::BAD_GATEWAY);
    let again = site.send(&request).await;
    again.is(&route["in_doubt"]);
    again.is(&route["lapsed"]);
    assert!(again.header("link").contains(route["problems"]["docs"].as_str().unwrap()));
    assert_eq!(site.books.lock().await.len(), 1, "nothing ran again");
}

#[tokio::test]
async fn what_is_too_long_is_answered_as_promised() {
    for route in Site::open().await.routes() {
        let site = Site::open().await;
        let path = route["path"].as_str().unwrap().to_owned();
        let limit: usize = route["request"]["max_bytes"].as_u64().unwrap().try_into().unwrap();
        let padded =
            |length: usize| format!("{}{}", " ".repeat(length - bodies(&path).0.len()), bodies(&path).0);
        site.send(&Ask::new(&path, padded(limit + 1)).key("long")).await.is(&route["request"]);
        assert!(site.send(&Ask::new(&path, padded(limit)).key("long")).await.status.is_success());

        let kept = route["oversized"]["max_bytes"].as_u64().unwrap();
        let request = match path.as_str() {
            "/comments" => {
                let text = "a".repeat(limit - r#"{"text":""}"#.len()); // the answer has an id as well
                Ask::new(&path, format!(r#"{{"text":"{text}"}}"#))
            }
            "/exports" => {
                let ids: Vec<u64> = (0..kept / 10).collect();
                Ask::new(&path, serde_json::to_string(&ids).unwrap())
            }
            _ => continue, // its answers are short
        };
        let request = request.key("answer");
        let first = site.send(&request).await;
        assert!(first.text.len() as u64 > kept, "{} is kept", first.text.len());
        let again = site.send(&request).await;
        if route["oversized"]["answer"] == "omit-body" {
            assert_eq!((again.status, again.replayed, again.text.as_str()), (first.status, true, ""));
            assert_eq!(again.header(route["oversized"]["header"].as_str().unwrap()), "omitted");
        } else {
            again.is(&route["oversized"]);
        }
    }
}
