//! The laws of a store whose server is on a network, as a suite that breaks the line between the two.
//!
//! A [`Proxy`] stands between a store and its server. It counts *exchanges*, a request and its reply, of whatever
//! protocol the two speak, and lets a [`Fault`] befall the ones it is told. A law strikes each exchange of a call in
//! turn, so that every place where a line can break is tried: the check of a pooled connection, the statement's
//! preparation, the write, the commit, the connecting anew. What is true on the server is seen through a second store
//! of the same kind whose line is whole.
//!
//! # Grade your store
//!
//! ```no_run
//! # use idempotency_store_memory::MemoryStore as YourStore;
//! # trait Connect: Sized { async fn connect(url: &str) -> Self; }
//! # impl Connect for YourStore { async fn connect(_: &str) -> Self { Self::new() } }
//! use idempotency_store_contract::{wire::Wired, wire_faults};
//!
//! struct Yours;
//!
//! impl Wired for Yours {
//!     type Store = YourStore;
//!
//!     fn server(&self) -> Option<String> {
//!         Some("127.0.0.1:5432".to_owned()) // or None, when there is none to test with
//!     }
//!
//!     async fn open(&self, address: &str) -> Self::Store {
//!         YourStore::connect(&format!("postgres://postgres@{address}/postgres")).await
//!     }
//! }
//!
//! wire_faults!(Yours);
//! # fn main() {}
//! ```

use std::{future::Future, time::Duration};

use idempotency_core::{Inspect, Store};

mod connection;
mod deed;
mod laws;
mod line;
mod proxy;
mod suite;

pub use proxy::{Fault, Proxy};
pub use suite::{WireLaw, grade, prove};

/// When a store under test gives a call up, at the latest, if [`Wired::time_limit`] does not say otherwise: half a
/// second. Laws wait that long often.
pub const TIME_LIMIT: Duration = Duration::from_millis(500);

/// A store on a network that stands for its grade.
pub trait Wired: Send + Sync + 'static {
    /// The store. Laws read records through [`Inspect`], so that a lie about a write is found.
    type Store: Store + Inspect;

    /// Where the server is, as `host:port`. `None` when there is none to test with, and whoever knows why has said so:
    /// no law is tried then.
    fn server(&self) -> Option<String>;

    /// A store that reaches its server at `address`, also `host:port`, and gives up waiting for it within
    /// [`time_limit`](Self::time_limit). Each law opens two, which see the same records; those of other laws are none of their business.
    fn open(&self, address: &str) -> impl Future<Output = Self::Store> + Send;

    /// When a call over the line is given up, at the latest. The default is [`TIME_LIMIT`]; a server that is slow itself
    /// needs more, or calls are given up on a line that is whole.
    fn time_limit(&self) -> Duration {
        TIME_LIMIT
    }

    /// How long a line that is whole again may take to be of use. Ten seconds: a busy machine is slow, and a store that
    /// never comes back waits that long to be found out.
    fn recovery(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// How many calls a law makes at once, at most: no more than the server answers within the time limit, or each is
    /// given up for the others and none is ever answered. The default is 32.
    fn callers(&self) -> usize {
        32
    }
}
