use serde_json::json;

use super::*;

fn rendered(request: serde_json::Value, options: &Options) -> (String, Vec<u8>) {
    let request: Request = serde_json::from_value(request).unwrap();
    let words = Words::new("core/a", options, 1);
    let message = render(&request, &words, &"http://localhost:1/api".parse().unwrap(), options);
    (String::from_utf8(message.head).unwrap(), message.payload)
}

#[test]
fn a_request_is_sent_as_it_is_written() {
    let request = json!({
        "path": "/echo", "key": "a\"b", "body": "tea", "headers": [["X-A", "1"], ["x-a", "2"]]
    });
    let (head, payload) = rendered(request, &Options::default());
    assert_eq!(
        head,
        "POST /api/echo HTTP/1.1\r\nHost: localhost:1\r\nIdempotency-Key: \"a\\\"b\"\r\n\
         Content-Type: text/plain\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\n"
    );
    assert_eq!(payload, b"tea");
}

#[test]
fn options_name_the_header_and_the_spelling() {
    let options = Options { header: "X-Key".to_owned(), spelling: Spelling::Bare, ..Options::default() };
    let (head, _) = rendered(json!({ "path": "/echo", "key": "a" }), &options);
    assert!(head.contains("\r\nX-Key: a\r\n"), "{head}");
    let (head, _) = rendered(json!({ "path": "/echo", "key": "a", "small_letters": true }), &options);
    assert!(head.contains("\r\nx-key: a\r\n"), "{head}");
    let (head, _) = rendered(json!({ "path": "/echo", "key_lines": ["\"a\"", "b"] }), &options);
    assert!(head.contains("\r\nX-Key: \"a\"\r\nX-Key: b\r\n"), "{head}");
}

#[test]
fn a_caller_has_a_header_of_its_own() {
    let bound = Options { caller_header: Some("X-Tenant".to_owned()), ..Options::default() };
    let with = json!({ "path": "/echo", "caller": "a" });
    let without = json!({ "path": "/echo" });
    assert!(rendered(with.clone(), &Options::default()).0.contains("\r\nAuthorization: Bearer a\r\n"));
    assert!(!rendered(without.clone(), &Options::default()).0.contains("Authorization"));
    assert!(rendered(with, &bound).0.contains("\r\nX-Tenant: a\r\n"));
    assert!(rendered(without, &bound).0.contains("\r\nX-Tenant: somebody\r\n"));
}

#[test]
fn a_body_is_framed_as_asked() {
    let (head, payload) = rendered(
        json!({ "path": "/echo", "framing": "chunked", "chunks": ["ab", "", "c"] }),
        &Options::default(),
    );
    assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n") && !head.contains("Content-Length"));
    assert_eq!(payload, b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
    let (head, _) =
        rendered(json!({ "path": "/echo", "body": "a", "declared_length": 9 }), &Options::default());
    assert!(head.contains("\r\nContent-Length: 9\r\n"));
    assert!(
        !rendered(json!({ "method": "GET", "path": "/" }), &Options::default()).0.contains("Content-Length")
    );
}

#[test]
fn a_foreign_key_gets_a_suffix_within_its_quotes() {
    let key = |text: &str| String::from_utf8(suffixed(&Bytes::Text(text.to_owned()), "s")).unwrap();
    assert_eq!(key("k"), "k-s");
    assert_eq!(key("\"k\""), "\"k-s\"");
    assert_eq!(key("\"\""), "\"\"");
    assert_eq!(key(&"a".repeat(256)).len(), 256);
}
