//! The law, the engine and the protocol profiles of the idempotency family.
//!
//! A caller arrives at a *door* with an *operation*. The door's *profile* reads whose it is (scope), which one (key)
//! and what it says (fingerprint). The *engine* asks the *store* for one atomic *claim*. Either a *lease* is granted
//! and the door receives a *permit* to run, or the verdict says why not: completed, expired, in flight, mismatch, in
//! doubt. A permit ends by completing with an outcome or by being released; or it lapses. A *fence* makes sure that a
//! permit which was taken over can end nothing.
//!
//! The crate is built in floors; each uses what is below it and nothing above:
//!
//! | floor | modules |
//! |---|---|
//! | words | [`Key`], [`Operation`], [`Fingerprint`], [`Lease`], [`Outcome`], [`Record`], [`Claim`], [`columns`] |
//! | law | [`machine`] |
//! | ports | [`Store`], [`Inspect`], [`LedgerStore`], [`clock`] |
//! | engine | [`Engine`], [`Permit`], [`policy`], [`event`] |
//! | profiles | [`profile`] |

pub mod clock;
pub mod columns;
pub mod event;
pub mod machine;
pub mod policy;
pub mod profile;

mod calls;
mod claim;
mod engine;
mod erased;
mod fingerprint;
mod flight;
mod inspect;
mod keeper;
mod key;
mod lease;
mod lease_lost;
mod ledger;
mod live;
mod notify;
mod operation;
mod outcome;
mod permit;
mod record;
mod store;
mod waiting;

pub use claim::{Claim, Release, Resolution, Settled, Standing, Vacant};
pub use columns::CorruptRecord;
pub use engine::{ClaimError, Drained, Engine};
pub use erased::DynStore;
pub use fingerprint::{Fingerprint, FingerprintBuilder, FingerprintError, Part, Parts, Secret};
pub use inspect::{Inspect, Select};
pub use key::{Key, KeyError};
pub use lease::{Bid, Fence, Holder, Lease, OnLapse};
pub use lease_lost::LeaseLost;
pub use ledger::{Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets};
pub use notify::{Bells, Notify};
pub use operation::{Address, Door, Operation, Scope};
pub use outcome::{Form, Keep, Media, Outcome};
pub use permit::{Completion, Permit};
pub use record::{Phase, PhaseName, Record};
pub use store::{Fate, Store, StoreError, StoreErrorKind};
