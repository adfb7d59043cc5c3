//! Names in `_meta`: what is read there, and what is written.

/// Where a call's idempotency key stands in `_meta` of its request, unless another name is chosen.
pub const KEY: &str = "idempotency-key";
/// `_meta` of a result that is not of this call but of an earlier one: true there, and absent elsewhere.
pub const REPLAYED: &str = "idempotency-replayed";
/// `_meta` of a result that says what became of a call instead of what it came to: an object with `status`, `retryable`
/// and, where others' effects stand in the way, `conflicts`.
pub const OUTCOME: &str = "idempotency-outcome";

/// What the protocol gives a meaning of its own, without a prefix.
const TAKEN: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];

/// Whether `name` may name something of ours in `_meta`: an optional prefix of labels with dots between and a slash after
/// them, and a name, as the protocol has it; not one that the protocol keeps for itself.
pub(crate) fn is_free(name: &str) -> bool {
    let (prefix, name) = match name.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, name),
    };
    is_name(name)
        && !TAKEN.contains(&name)
        && prefix.is_none_or(|prefix| is_prefix(prefix) && !is_reserved(prefix))
}

fn is_name(name: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inside)
}

fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    })
}

/// The protocol keeps prefixes with its own name in them. Which label that is has changed once; any is left alone.
fn is_reserved(prefix: &str) -> bool {
    prefix.split('.').any(|label| matches!(label, "modelcontextprotocol" | "mcp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_protocol_and_not_its_own() {
        for free in [KEY, REPLAYED, OUTCOME, "com.example/idempotency-key", "a", "example/a_b.c"] {
            assert!(is_free(free), "{free}");
        }
        let taken = [
            "progressToken",
            "traceparent",
            "io.modelcontextprotocol/key",
            "dev.mcp/key",
            "com.mcp.tools/key",
        ];
        let no_names =
            ["", "-a", "a-", "a b", "/a", "com.example/", "1com/a", "com..example/a", "com.example/a/b", "ä"];
        for bad in taken.into_iter().chain(no_names) {
            assert!(!is_free(bad), "{bad}");
        }
    }
}
