//! Refusals, as OpenAPI describes them.

use idempotency_tower::Code;
use serde_json::{Value, json};

/// The name of the schema of problems among the document's components.
pub(super) const PROBLEM: &str = "IdempotencyProblem";

/// The schema of every refusal's body.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "description": "Why the request was neither run nor answered with an earlier result (RFC 9457).",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "code": { "type": "string", "description": "Stable: decide by it." },
            "mismatch": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The parts in which the request differs from the first one under its key.",
            },
            "original_status": {
                "type": "integer",
                "description": "The status of the first answer, where it was not kept.",
            },
        },
    })
}

/// The schema of a refusal with one of `codes`.
pub(super) fn schema_of(codes: &[Code]) -> Value {
    let names: Vec<_> = codes.iter().map(|code| code.name()).collect();
    json!({
        "allOf": [
            { "$ref": format!("#/components/schemas/{PROBLEM}") },
            { "type": "object", "properties": { "code": { "type": "string", "enum": names } } },
        ],
    })
}

/// What the codes say, for people.
pub(super) fn description(codes: &[Code]) -> String {
    let lines: Vec<_> = codes.iter().map(|code| format!("`{code}`: {}", code.title())).collect();
    lines.join("; ")
}
