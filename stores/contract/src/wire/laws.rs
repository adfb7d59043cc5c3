//! The laws about broken lines, by what they are about.

pub(super) mod dropped;
pub(super) mod engine;
pub(super) mod fate;
pub(super) mod recovery;
