//! Payments that no retry makes twice: actix-web, one SQLite file for the payments and the idempotency records, and a
//! policy for money.
//!
//! Read [`app`] first: the policy, the line that guards the route, and the handler. [`customer`] tells callers apart, and
//! [`payments`] is the table.

pub mod app;
pub mod customer;
pub mod payments;
