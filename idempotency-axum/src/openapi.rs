//! What a policy means for an OpenAPI document.
//!
//! ```
//! use idempotency_axum::{Policy, openapi};
//! use serde_json::json;
//!
//! let mut document = json!({
//!     "openapi": "3.1.0",
//!     "info": { "title": "Shop", "version": "1" },
//!     "paths": { "/orders": { "post": { "responses": { "201": { "description": "The order" } } } } },
//! });
//! let policy = Policy::builder().required().build()?;
//! openapi::describe(&mut document, "/orders", &policy)?;
//!
//! let order = &document["paths"]["/orders"]["post"];
//! assert_eq!(order["parameters"][0]["name"], "idempotency-key");
//! assert_eq!(order["parameters"][0]["required"], true);
//! assert!(order["responses"]["201"]["headers"]["idempotency-replayed"].is_object());
//! assert!(order["responses"]["422"]["content"]["application/problem+json"].is_object());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing that the document says is taken back. Where an operation has a 409 of its own, or a `4XX` or a `default` that
//! stands for one, the refusal's problem is added to what is said there; a `$ref` to a response becomes a copy of it for
//! that. A second call changes nothing.

use idempotency_tower::Policy;
use serde_json::{Map, Value};
use thiserror::Error;

use self::{operation::Description, problem::PROBLEM, reference::References};

mod operation;
mod problem;
mod reference;
#[cfg(feature = "utoipa")]
pub mod utoipa;

/// Adds to the operations of `path` what `policy` does with them, in an OpenAPI 3 document: the key header, the headers
/// of replays, and the refusals it can give. A policy in the shadow adds nothing.
///
/// # Errors
/// [`Undescribed`] says why nothing was added.
pub fn describe(document: &mut Value, path: &str, policy: &Policy) -> Result<(), Undescribed> {
    let Some(promise) = policy.promise() else { return Ok(()) };
    let mut described = document.clone();
    let references = References::of(document);
    let item = described.get_mut("paths").and_then(|paths| paths.get_mut(path));
    let item = item.and_then(Value::as_object_mut).ok_or_else(|| Undescribed::NoPath(path.to_owned()))?;
    let shared = item.get("parameters").cloned();
    let description = Description { promise: &promise, references: &references, shared: shared.as_ref() };
    let mut covered = 0;
    for method in &promise.methods {
        if let Some(Value::Object(operation)) = item.get_mut(&method.as_str().to_ascii_lowercase()) {
            description.add_to(operation)?;
            covered += 1;
        }
    }
    if covered == 0 {
        return Err(Undescribed::NoOperation(path.to_owned()));
    }
    if promise.problem_base.is_some() {
        let root = described.as_object_mut().ok_or(Undescribed::Malformed("document"))?;
        let schemas = object_in(object_in(root, "components")?, "schemas")?;
        schemas.entry(PROBLEM).or_insert_with(problem::schema);
    }
    *document = described;
    Ok(())
}

/// Why a document was left as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Undescribed {
    /// The document has no path of this name.
    #[error("the document has no path {0}")]
    NoPath(String),
    /// No operation of this path has a method that the policy guards.
    #[error("no operation of {0} has a guarded method")]
    NoOperation(String),
    /// What stands under this name is not what OpenAPI wants there.
    #[error("`{0}` is not what OpenAPI wants there")]
    Malformed(&'static str),
    /// utoipa's types do not say what the document would.
    #[cfg(feature = "utoipa")]
    #[error("utoipa cannot hold the document")]
    Utoipa(#[source] serde_json::Error),
}

/// The object `name` of `parent`, made where there is none.
fn object_in<'a>(
    parent: &'a mut Map<String, Value>,
    name: &'static str,
) -> Result<&'a mut Map<String, Value>, Undescribed> {
    let member = parent.entry(name).or_insert_with(|| Map::new().into());
    member.as_object_mut().ok_or(Undescribed::Malformed(name))
}
