//! The laws, by what they are about.

pub(crate) mod bounds;
pub(crate) mod doubt;
pub(crate) mod endings;
pub(crate) mod grants;
pub(crate) mod inspect;
pub(crate) mod outcomes;
pub(crate) mod purge;
pub(crate) mod race;
pub(crate) mod renewal;
pub(crate) mod retention;
pub(crate) mod secrets;
