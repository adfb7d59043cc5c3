//! A bank over gRPC whose clients may try again: tonic, and one layer that makes a transfer and its retry one transfer.
//!
//! Read [`serve`] first: the line that guards, and the end in order. [`bank`] moves the money, [`rpc`] is what a build
//! script would generate from a `.proto` file, written by hand so that nothing has to be installed.

pub mod bank;
pub mod rpc;
pub mod server;

pub use server::serve;
