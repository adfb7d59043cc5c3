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
pub const CORS_EXPOSE: [&str; 7] = [
    IDEMPOTENCY_REPLAYED,
    IDEMPOTENCY_REPLAY,
    IDEMPOTENCY_DEGRADED,
    "retry-after",
    "link",
    "location",
    "preference-applied",
];

/// Whether a replay repeats the field `name` (lower case) of the first answer, or of its trailers.
///
/// It repeats all but what belongs to one exchange: its connection, framing and time; its caller's cookies, challenges
/// and origin; its limits and its trace. Fields that the answer's `Connection` [nominates](nominated) stay out too.
pub fn is_replayed(name: &str) -> bool {
    !(is_of_connection(name)
        || is_of_caller(name)
        || is_of_trace(name)
        || is_marker(name)
        || matches!(name, "date" | "server" | "age" | "via" | "alt-svc" | "server-timing"))
}

/// Whether the field `name` (lower case) is this layer's to set, and is taken off every answer of a handler, the first
/// included: a handler must not be able to pass a first answer off as a replay.
pub fn is_marker(name: &str) -> bool {
    name.starts_with("idempotency-") || name == "preference-applied"
}

/// Whether the field `name` (lower case) can stand in no stored answer: the connection that carries an answer sets it
/// anew, framing included, or this layer does. A replay leaves it out even where a record has it.
pub fn is_never_replayed(name: &str) -> bool {
    is_of_connection(name) || is_marker(name)
}

/// Whether the field `name` (lower case) describes the very bytes of a body: without them it would be wrong, so a replay
/// whose body was not kept leaves it out.
pub fn describes_body(name: &str) -> bool {
    matches!(
        name,
        "accept-ranges"
            | "content-digest"
            | "content-encoding"
            | "content-md5"
            | "content-range"
            | "digest"
            | "repr-digest"
    )
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

/// Which fields a route's replays repeat: [`is_replayed`], and the route's own exceptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayedFields {
    allowed: Vec<Box<str>>,
    denied: Vec<Box<str>>,
}

impl ReplayedFields {
    /// Repeats these fields too. Framing, the connection's own fields and this layer's markers stay out all the same:
    /// they are never a stored answer's.
    #[must_use]
    pub fn allow<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.allowed.extend(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase().into()));
        self
    }

    /// Never repeats these fields, whatever else is allowed.
    #[must_use]
    pub fn deny<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.denied.extend(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase().into()));
        self
    }

    /// Whether a replay repeats the field `name` (lower case).
    pub fn contains(&self, name: &str) -> bool {
        let listed = |list: &[Box<str>]| list.iter().any(|listed| **listed == *name);
        let is_allowed = listed(&self.allowed) && !is_never_replayed(name);
        !listed(&self.denied) && (is_replayed(name) || is_allowed)
    }
}

/// What the connection that carries an answer decides anew, framing included.
fn is_of_connection(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "content-length"
    )
}

/// What is said to one caller: its cookies, challenges, origin and limits.
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

/// What identifies one try of a request.
fn is_of_trace(name: &str) -> bool {
    matches!(
        name,
        "request-id"
            | "x-request-id"
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
mod tests;
