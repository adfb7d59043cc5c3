//! The same for documents of utoipa.

use ::utoipa::openapi::{OpenApi, PathItem, RefOr, Schema};
use idempotency_tower::Policy;

use super::{Undescribed, problem::PROBLEM};

/// [`describe`](super::describe), in a document that utoipa made. What is not concerned is not touched.
///
/// # Errors
/// [`Undescribed`] says why nothing was added.
pub fn describe(document: &mut OpenApi, path: &str, policy: &Policy) -> Result<(), Undescribed> {
    let mut json = serde_json::to_value(&*document).map_err(Undescribed::Utoipa)?;
    super::describe(&mut json, path, policy)?;
    let item: PathItem = serde_json::from_value(json["paths"][path].take()).map_err(Undescribed::Utoipa)?;
    if let Some(schema) = json.pointer_mut(&format!("/components/schemas/{PROBLEM}")) {
        let schema: RefOr<Schema> = serde_json::from_value(schema.take()).map_err(Undescribed::Utoipa)?;
        let components = document.components.get_or_insert_default();
        components.schemas.entry(PROBLEM.to_owned()).or_insert(schema);
    }
    document.paths.paths.insert(path.to_owned(), item);
    Ok(())
}
