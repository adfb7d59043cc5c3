//! An orders API whose retries are safe: axum, one SQLite file, one layer.
//!
//! Read [`app`] first: the route, its handler, and the line that guards it. [`orders`] is the business table, whose
//! unique key makes a second run harmless. The binary serves the API, stops it gracefully, and with `demo` tells what
//! happens when clients repeat themselves and servers die.

pub mod app;
pub mod customer;
pub mod orders;

/// Compiles the snippets of the project's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
