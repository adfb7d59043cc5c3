//! A support agent that refunds once: a model that calls tools, a payment provider that times out, a ledger in between.
//!
//! Read [`agent`] first: the loop in which a model calls tools, and the run around it. [`refunds`] is the guarded tool, and
//! says what each error of the provider means. [`model`] is a model that follows a script, so that nothing here needs a
//! network; in its place stands the client of your model's API.

pub mod agent;
pub mod model;
pub mod provider;
pub mod refunds;
