//! One route of the contract, as JSON.
//!
//! Wherever a member says what is answered, `answer` is the word for it; `refuse` comes with `status` and `code`.

use http::Method;
use idempotency_core::{
    Key, OnLapse,
    profile::http::{
        Code, KeySyntax,
        contract::{Statuses, iso_duration},
        headers,
    },
};
use serde_json::{Map, Value, json};

use super::{KeySpace, Promise};
use crate::Oversized;

pub(super) fn route(path: &str, promise: &Promise) -> Value {
    json!({
        "path": path,
        "methods": promise.methods.iter().map(Method::as_str).collect::<Vec<_>>(),
        "key": key(promise),
        "request": with(refuse(Code::PayloadTooLarge), json!({ "max_bytes": promise.max_request_bytes })),
        "retention": iso_duration(promise.retention),
        "statuses": statuses(promise),
        "replay": { "header": promise.replayed_header.as_str(), "value": "true" },
        "oversized": oversized(promise),
        "in_flight": in_flight(promise),
        "mismatch": mismatch(promise),
        "expired": expired(promise),
        "lapsed": match promise.on_lapse {
            OnLapse::TakeOver => json!({ "answer": "run" }),
            OnLapse::Hold => refuse(Code::OutcomeUnknown),
        },
        "in_doubt": refuse(Code::OutcomeUnknown),
        "store_down": if promise.fails_open {
            json!({ "answer": "run", "header": headers::IDEMPOTENCY_DEGRADED, "value": "true" })
        } else {
            refuse(Code::StoreUnavailable)
        },
        "problems": problems(promise),
    })
}

fn key(promise: &Promise) -> Value {
    let missing =
        if promise.required { refuse(Code::MissingKey) } else { json!({ "answer": "run-unguarded" }) };
    json!({
        "header": promise.header.as_str(),
        "required": promise.required,
        "syntax": match promise.syntax {
            KeySyntax::Lenient => "lenient",
            KeySyntax::Strict => "strict",
        },
        "min_length": 1,
        "max_length": Key::MAX_BYTES,
        "scope": match promise.key_space {
            KeySpace::Shared => "shared",
            KeySpace::Credentials => "credentials",
            KeySpace::Principal => "principal",
            KeySpace::PrincipalOrCredentials => "principal-or-credentials",
        },
        "missing": missing,
        "invalid": refuse(Code::InvalidKey),
    })
}

fn statuses(promise: &Promise) -> Value {
    let Statuses { kept, released, in_doubt } = Statuses::of(promise.on_server_error);
    json!({ "kept": kept, "released": released, "in_doubt": in_doubt })
}

fn oversized(promise: &Promise) -> Value {
    let answer = match promise.oversized {
        Oversized::Tombstone => refuse(Code::ResultNotReplayable),
        Oversized::OmitBody => {
            json!({ "answer": "omit-body", "header": headers::IDEMPOTENCY_REPLAY, "value": "omitted" })
        }
    };
    with(answer, json!({ "max_bytes": promise.max_response_bytes }))
}

/// Who waits in vain is refused as well; who prefers to wait less says so (`Prefer: wait=N`).
fn in_flight(promise: &Promise) -> Value {
    let retry_after_cap = iso_duration(promise.retry_after_cap);
    let refused = with(refuse(Code::Conflict), json!({ "retry_after_at_most": retry_after_cap }));
    match promise.wait {
        None => refused,
        Some(wait) => {
            let waits = json!({ "answer": "wait", "wait_at_most": iso_duration(wait), "preference": "wait" });
            with(refused, waits)
        }
    }
}

fn mismatch(promise: &Promise) -> Value {
    let refused = refuse(Code::FingerprintMismatch);
    if promise.key_space.binds_credentials() {
        let credentials = refuse(Code::CredentialsMismatch);
        return with(refused, json!({ "other_credentials": credentials }));
    }
    refused
}

fn expired(promise: &Promise) -> Value {
    if promise.rejects_expired_for.is_zero() {
        return json!({ "answer": "run" });
    }
    with(refuse(Code::KeyExpired), json!({ "for": iso_duration(promise.rejects_expired_for), "then": "run" }))
}

fn problems(promise: &Promise) -> Value {
    let codes: Map<_, _> =
        promise.codes().into_iter().map(|code| (code.name().to_owned(), code.status().into())).collect();
    let mut problems = json!({ "codes": codes });
    if let Some(base) = &promise.problem_base {
        problems["media_type"] = "application/problem+json".into();
        problems["type_base"] = base.as_str().into();
    }
    if let Some(docs) = &promise.docs {
        problems["docs"] = docs.as_str().into();
    }
    problems
}

fn refuse(code: Code) -> Value {
    json!({ "answer": "refuse", "status": code.status(), "code": code.name() })
}

/// The members of both objects; where both have one, `more` decides.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}
