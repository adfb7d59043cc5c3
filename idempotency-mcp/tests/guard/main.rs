//! Guarded tools, called by a real client over rmcp's transport in the process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod calls;
mod endings;
mod kinds;
mod outage;
mod scene;
mod start;
