//! Header names: the profile's own, and which fields of an answer its replay repeats.

/// The request header that carries the key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// `true` on a replay, absent on a first answer.
pub const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";
/// `omitted` on a replay whose body was not kept.
pub const IDEMPOTENCY_REPLAY: &str = "idempotency-replay";
/// `true` on an answer that was given while the store did not answer.
pub const IDEMPOTENCY_DEGRADED: &str = "idempotency-degraded";

/// The request headers a CORS policy must allow.
pub const CORS_ALLOW: [&str; 1] = [IDEMPOTENCY_KEY];
/// The response headers a CORS policy should expose, so that scripts can tell a replay and know when to retry.
pub const CORS_EXPOSE: [&str; 5] =
    [IDEMPOTENCY_REPLAYED, IDEMPOTENCY_REPLAY, IDEMPOTENCY_DEGRADED, "retry-after", "link"];

/// Whether a replay repeats the field `name` (lower case) of the first answer, or of its trailers.
///
/// It repeats all but what belongs to one exchange: its connection, framing and time; its caller's cookies, challenges
/// and origin; its limits and its trace. Fields that the answer's `Connection` [nominates](nominated) stay out too.
pub fn is_replayed(name: &str) -> bool {
    !(is_of_connection(name)
        || is_of_caller(name)
        || is_of_trace(name)
        || is_marker(name)
        || matches!(name, "content-length" | "date" | "server" | "age" | "via" | "alt-svc" | "server-timing"))
}

/// Whether the field `name` (lower case) is this layer's to set, and is taken off every answer of a handler, the first
/// included: a handler must not be able to pass a first answer off as a replay.
pub fn is_marker(name: &str) -> bool {
    name.starts_with("idempotency-") || name == "preference-applied"
}

/// The field names that a `Connection` value nominates as its connection's own, as spelled there: compare them without
/// regard to case.
pub fn nominated(connection: &[u8]) -> impl Iterator<Item = &str> {
    let names = connection.split(|byte| *byte == b',');
    names
        .filter_map(|name| str::from_utf8(name).ok())
        .map(|name| name.trim_matches([' ', '\t']))
        .filter(|name| !name.is_empty())
}

fn is_of_connection(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "transfer-encoding" | "upgrade"
    )
}

fn is_of_caller(name: &str) -> bool {
    name.starts_with("access-control-")
        || is_or_starts(name, "ratelimit")
        || is_or_starts(name, "x-ratelimit")
        || matches!(
            name,
            "set-cookie"
                | "clear-site-data"
                | "www-authenticate"
                | "proxy-authenticate"
                | "authentication-info"
                | "proxy-authentication-info"
        )
}

fn is_of_trace(name: &str) -> bool {
    matches!(
        name,
        "x-request-id"
            | "x-correlation-id"
            | "traceparent"
            | "tracestate"
            | "baggage"
            | "x-amzn-trace-id"
            | "cf-ray"
    )
}

/// Whether `name` is `family` or one of its members, `family-...`.
fn is_or_starts(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
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
}
