use super::*;

#[test]
fn what_belongs_to_one_exchange_is_not_replayed() {
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "date",
        "server",
        "age",
        "via",
        "set-cookie",
        "clear-site-data",
        "www-authenticate",
        "proxy-authenticate",
        "authentication-info",
        "proxy-authentication-info",
        "alt-svc",
        "server-timing",
        "access-control-allow-origin",
        "access-control-expose-headers",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-remaining",
        "x-ratelimit-limit",
        "request-id",
        "x-request-id",
        "x-correlation-id",
        "traceparent",
        "tracestate",
        "baggage",
        "x-amzn-trace-id",
        "cf-ray",
        "idempotency-key",
        "idempotency-replayed",
        "idempotency-anything",
        "preference-applied",
    ] {
        assert!(!is_replayed(name), "{name}");
    }
}

#[test]
fn everything_else_is_replayed() {
    for name in [
        "content-type",
        "content-encoding",
        "content-language",
        "location",
        "etag",
        "link",
        "vary",
        "allow",
        "cache-control",
        "retry-after",
        "last-modified",
        "x-powered-by",
        "dated",
        "ratelimiter",
        "x-ratelimited",
        "idempotency",
        "idempotent-replayed",
        "set-cookie-not",
        "grpc-status",
    ] {
        assert!(is_replayed(name), "{name}");
    }
}

#[test]
fn only_our_own_fields_are_markers() {
    for name in [IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED, IDEMPOTENCY_REPLAY, IDEMPOTENCY_DEGRADED] {
        assert!(is_marker(name), "{name}");
    }
    assert!(is_marker("preference-applied"));
    assert!(!is_marker("set-cookie") && !is_marker("idempotency") && !is_marker("prefer"));
}

#[test]
fn nominated_names_are_read_from_a_list() {
    let read = |value: &'static [u8]| nominated(value).collect::<Vec<_>>();
    assert_eq!(read(b"close"), ["close"]);
    assert_eq!(read(b" X-Hop ,\tclose,, keep-alive"), ["X-Hop", "close", "keep-alive"]);
    assert_eq!(read(b"a, \xff, b"), ["a", "b"]);
    assert_eq!(read(b""), [""; 0]);
}

#[test]
fn a_route_may_allow_and_deny_but_not_what_the_layer_decides() {
    let fields = ReplayedFields::default()
        .allow(["Set-Cookie", "date", "content-length", "Connection", "idempotency-replayed"])
        .deny(["ETag", "Date"]);
    assert!(fields.contains("set-cookie") && fields.contains("location"));
    for name in ["etag", "date", "content-length", "connection", "idempotency-replayed", "x-request-id"] {
        assert!(!fields.contains(name), "{name}");
    }
    assert!(!ReplayedFields::default().contains("set-cookie"));
}

#[test]
fn what_describes_the_bytes_of_a_body_is_told_from_what_does_not() {
    for name in ["content-encoding", "content-range", "content-digest", "repr-digest", "accept-ranges"] {
        assert!(describes_body(name) && is_replayed(name), "{name}");
    }
    for name in ["content-type", "content-language", "etag", "location"] {
        assert!(!describes_body(name), "{name}");
    }
}

#[test]
fn framing_and_markers_are_in_no_stored_answer() {
    for name in
        ["content-length", "transfer-encoding", "connection", "upgrade", "trailer", IDEMPOTENCY_REPLAYED]
    {
        assert!(is_never_replayed(name), "{name}");
    }
    assert!(!is_never_replayed("set-cookie") && !is_never_replayed("content-type"));
}
