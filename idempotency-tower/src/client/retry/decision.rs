//! Whether an answer is the answer, or the guard's request to come again.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header, response::Parts};
use idempotency_core::profile::http::{Code, headers};
use serde_json::Value;

use super::after::retry_after;

/// What to do with an answer to a keyed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Give it to the caller.
    Answer,
    /// Try again with the same key.
    Retry {
        /// What the guard refused with.
        code: Code,
        /// How long `Retry-After` asks to wait.
        after: Option<Duration>,
    },
}

impl Decision {
    const RETRIED: [Code; 3] = [Code::Conflict, Code::StoreUnavailable, Code::Overloaded];

    /// Whether the body can change the decision.
    pub(super) fn depends_on_body(head: &Parts) -> bool {
        Self::RETRIED.iter().any(|code| head.status == code.status())
            && is_problem(&head.headers)
            && !head.headers.contains_key(headers::IDEMPOTENCY_REPLAYED)
    }

    pub(super) fn of(head: &Parts, body: &[u8], problem_base: &str) -> Self {
        if !Self::depends_on_body(head) {
            return Self::Answer;
        }
        match refused_with(head.status, body, problem_base) {
            Some(code) => Self::Retry { code, after: retry_after(&head.headers, SystemTime::now()) },
            None => Self::Answer,
        }
    }
}

/// The code of a refusal that is worth another try: both `type` and `code` of its document must say so.
fn refused_with(status: StatusCode, body: &[u8], problem_base: &str) -> Option<Code> {
    let problem: Value = serde_json::from_slice(body).ok()?;
    let name = problem.get("code")?.as_str()?;
    if problem.get("type")?.as_str()?.strip_prefix(problem_base)? != name {
        return None;
    }
    Decision::RETRIED.into_iter().find(|code| code.name() == name && status == code.status())
}

fn is_problem(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/problem+json")
}

#[cfg(test)]
mod tests {
    use http::Response;
    use idempotency_core::profile::http::problems::TYPE_BASE;

    use super::*;

    fn head(status: u16, content_type: &str) -> Parts {
        let response = Response::builder().status(status).header("content-type", content_type);
        response.header("retry-after", "3").body(()).unwrap().into_parts().0
    }

    fn document(base: &str, named: &str, code: &str) -> Vec<u8> {
        format!(r#"{{"type": "{base}{named}", "status": 409, "code": "{code}"}}"#).into_bytes()
    }

    fn decide(head: &Parts, body: &[u8]) -> Decision {
        Decision::of(head, body, TYPE_BASE)
    }

    #[test]
    fn three_refusals_are_worth_another_try() {
        for code in Code::ALL {
            let name = code.name();
            let head = head(code.status(), "Application/Problem+JSON; charset=utf-8");
            let decision = decide(&head, &document(TYPE_BASE, name, name));
            let expected = if ["conflict", "store-unavailable", "overloaded"].contains(&name) {
                Decision::Retry { code, after: Some(Duration::from_secs(3)) }
            } else {
                Decision::Answer
            };
            assert_eq!(decision, expected, "{name}");
        }
    }

    #[test]
    fn what_only_looks_like_a_refusal_is_an_answer() {
        let ours = document(TYPE_BASE, "conflict", "conflict");
        let problem = head(409, "application/problem+json");
        assert_ne!(decide(&problem, &ours), Decision::Answer);
        assert_eq!(decide(&head(409, "application/json"), &ours), Decision::Answer);
        assert_eq!(decide(&head(503, "application/problem+json"), &ours), Decision::Answer);
        for body in [
            document("https://shop.example/problems#", "conflict", "conflict"),
            document(TYPE_BASE, "sold-out", "conflict"),
            document(TYPE_BASE, "conflict", "sold-out"),
            b"{}".to_vec(),
            b"[]".to_vec(),
            ours[..ours.len() - 1].to_vec(),
        ] {
            assert_eq!(decide(&problem, &body), Decision::Answer, "{}", String::from_utf8_lossy(&body));
        }
    }

    #[test]
    fn a_replay_is_an_answer_whatever_it_repeats() {
        let mut head = head(409, "application/problem+json");
        head.headers.insert("idempotency-replayed", "true".parse().unwrap());
        assert_eq!(decide(&head, &document(TYPE_BASE, "conflict", "conflict")), Decision::Answer);
    }
}
