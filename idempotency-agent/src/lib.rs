#![doc = include_str!("../README.md")]

mod classify;
mod desk;
mod door;
mod effect;
mod error;
mod event;
mod instant;
mod job;
pub mod json;
mod key;
pub mod ledger;
mod outcome;
mod policy;
mod reconcile;
mod run;
mod shelf;
mod told;
pub mod tools;
mod webhook;

#[cfg(feature = "reqwest")]
pub use classify::ReqwestErrors;
#[cfg(feature = "tonic")]
pub use classify::TonicErrors;
pub use classify::{Applied, Classifier, EffectError};
pub use door::{Ledger, LedgerBuilder};
pub use effect::{EffectBuilder, EffectContext};
pub use error::LedgerError;
pub use event::{Event, EventKind, Observer};
pub use instant::instant;
pub use job::{Advice, Delivered, JobBuilder};
pub use key::{EffectKey, Intent, LedgerScope, NameError, ProviderKey};
pub use ledger::{Compat, ConflictMode, RunMode};
pub use outcome::{Outcome, Refusal};
pub use policy::{Policy, PolicyError, ProviderKeys};
pub use reconcile::{Finding, InDoubt, Reconciled, Reconciler};
pub use run::{Run, RunBuilder, RunState};
pub use webhook::WebhookAnswer;
