//! The profiles: protocol words to core words and back, without a framework, without IO.
//!
//! A profile reads whose an operation is, which one and what it says; it encodes the answer a replay gives back; and
//! it words every refusal. A door adds only what its framework needs.

pub mod http;
