//! The laws, by what they are about.

pub(crate) mod endings;
pub(crate) mod grants;
