//! `$ref`: what the document says elsewhere.

use serde_json::Value;

/// More steps than a sane document takes; a circle takes more.
const MAX_STEPS: usize = 8;

/// The components that a document's references point to.
#[derive(Debug)]
pub(super) struct References {
    components: Option<Value>,
}

impl References {
    pub(super) fn of(document: &Value) -> Self {
        Self { components: document.get("components").cloned() }
    }

    /// What `value` says, itself or by reference. `None` when it refers to what is not here.
    pub(super) fn resolve<'a>(&'a self, mut value: &'a Value) -> Option<&'a Value> {
        for _ in 0..MAX_STEPS {
            let Some(reference) = value.get("$ref") else { return Some(value) };
            let pointer = reference.as_str()?.strip_prefix("#/components")?;
            value = self.components.as_ref()?.pointer(pointer)?;
        }
        None
    }
}
