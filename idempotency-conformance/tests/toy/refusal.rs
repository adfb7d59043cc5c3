//! What a request is refused with.

use super::{fault::Fault, http::Reply};

pub(crate) fn refusal(status: u16, code: &str, fault: Option<Fault>) -> Reply {
    let is = |wrong| fault == Some(wrong);
    let code_member =
        if is(Fault::RefusalsWithoutACode) { String::new() } else { format!(",\"code\":\"{code}\"") };
    let mut reply = if is(Fault::ProblemsAreACodeOnly) {
        Reply::new(status, "application/problem+json", format!("{{\"code\":\"{code}\"}}"))
    } else {
        let kind = format!("https://toy.example/problems#{code}");
        let body = format!("{{\"type\":\"{kind}\",\"title\":\"Refused\",\"status\":{status}{code_member}}}");
        Reply::new(status, "application/problem+json", body)
    };
    if is(Fault::RefusalsArePlainText) {
        reply = Reply::new(status, "text/plain", "refused, see https://toy.example");
    }
    if is(Fault::RefusalsCacheable) { reply } else { reply.with("Cache-Control", "no-store") }
}

pub(crate) fn conflict(lease_seconds: u64, fault: Option<Fault>) -> Reply {
    let seconds = match fault {
        Some(Fault::RetryAfterADay) => 86_400,
        Some(Fault::RetryAfterTwoLeases) => lease_seconds * 2,
        _ => lease_seconds,
    };
    let reply = refusal(409, "conflict", fault);
    if fault == Some(Fault::RetryAfterMissing) {
        reply
    } else {
        reply.with("Retry-After", seconds.to_string())
    }
}
