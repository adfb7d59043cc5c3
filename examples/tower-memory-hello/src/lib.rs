//! A guest book without a framework: hyper serves a tower service, and one layer makes it safe to sign twice.
//!
//! Read [`book`] first: what a guest gets, and the line that guards it. [`server`] takes connections, and ends in order.

pub mod book;
pub mod server;

/// Compiles the snippets of the project's pages.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/semantics.md")]
    struct Semantics;
    #[doc = include_str!("../../../docs/policies.md")]
    struct Policies;
    #[doc = include_str!("../../../docs/faq.md")]
    struct Questions;
    #[doc = include_str!("../../../docs/security.md")]
    struct Security;
}
