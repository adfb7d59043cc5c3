//! The service's OpenAPI document.

use idempotency_axum::{
    Store,
    openapi::{Undescribed, describe},
};
use serde_json::{Value, json};

use crate::policies::Layers;

/// What the service says of its routes, and what their policies add to it.
///
/// # Errors
/// [`Undescribed`] when a guarded route is missing in it.
pub fn document<S: Store>(layers: &Layers<S>) -> Result<Value, Undescribed> {
    let mut document = routes();
    describe(&mut document, "/comments", layers.comments.policy())?;
    describe(&mut document, "/payments", layers.payments.policy())?;
    describe(&mut document, "/exports", layers.exports.policy())?;
    Ok(document)
}

/// The routes without a word about keys.
fn routes() -> Value {
    let takes = |schema: Value| json!({ "content": { "application/json": { "schema": schema } } });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Three policies", "version": "1.0.0" },
        "paths": {
            "/comments": { "post": {
                "summary": "Writes a comment",
                "requestBody": takes(json!({ "type": "object", "required": ["text"] })),
                "responses": { "201": { "description": "The comment" } },
            } },
            "/payments": { "post": {
                "summary": "Pays",
                "requestBody": takes(json!({ "type": "object", "required": ["amount"] })),
                "responses": {
                    "201": { "description": "Paid" },
                    "502": { "description": "The bank did not answer; it may have paid" },
                },
            } },
            "/exports": { "post": {
                "summary": "Exports records by their ids",
                "requestBody": takes(json!({ "type": "array", "items": { "type": "integer" } })),
                "responses": { "200": { "description": "One line for each id" } },
            } },
        },
    })
}
