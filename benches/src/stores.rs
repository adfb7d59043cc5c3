//! What a store costs over the least that its server could be asked for, and what many records cost it.
//!
//! - [`throughput`] compares claim and completion with the raw floor: one write that takes a key and one that puts an
//!   answer there, through the same driver, pool and concurrency, of as many bytes.
//! - [`crowd`] compares claims among a million records with claims among a thousand, and claims during a purge of half
//!   of them with claims without one.

use std::{error::Error, sync::Arc, time::Duration};

use idempotency_axum::Store;
use idempotency_core::{
    Address, Bid, Claim, Fingerprint, Holder, Keep, Media, OnLapse, Operation, Outcome, Part, Settled,
};
use tokio::{task::JoinSet, time::Instant};

pub mod crowd;
pub mod floor;
pub mod throughput;

/// Whatever a driver or a store reports.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// How long an answer is, in bytes: a small JSON document and a few header fields.
const OUTCOME_BYTES: usize = 300;

const DAY: Duration = Duration::from_secs(86_400);

/// Something that takes a key nobody has, and then puts an answer there.
pub trait Pair: Send + Sync + 'static {
    /// Both, one after the other.
    fn pair(&self) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// A store, by its claim and its completion.
#[derive(Debug, Clone)]
pub struct Ours<S>(pub S);

impl<S: Store> Pair for Ours<S> {
    async fn pair(&self) -> Result<(), BoxError> {
        let op = operation(fresh_address());
        let Claim::Granted(lease) = self.0.claim(&op, &bid(DAY)).await? else {
            return Err("a fresh key was refused".into());
        };
        let keep = Keep { replay: DAY, then_reject: Duration::ZERO };
        match self.0.complete(&lease, &outcome(), keep).await? {
            Settled::Applied => Ok(()),
            Settled::Fenced(_) => Err("a completion was fenced".into()),
        }
    }
}

/// An address that no other pair has.
fn fresh_address() -> Address {
    let mut bytes = [0; 32];
    fastrand::fill(&mut bytes);
    Address::from_bytes(bytes)
}

fn operation(address: Address) -> Operation {
    let asked = Fingerprint::builder().part(Part::Method, b"POST").part(Part::Body, b"one book").build();
    Operation::new(address, asked)
}

fn bid(retention: Duration) -> Bid {
    let lease = Duration::from_secs(30);
    Bid { holder: Holder::draw(), lease, retention, on_lapse: OnLapse::TakeOver }
}

fn outcome() -> Outcome {
    Outcome::whole(Media(1), vec![b'a'; OUTCOME_BYTES])
}

/// Has `callers` make `each` pairs at once, and says how long all of them took.
async fn crowd_of<P: Pair>(pair: &Arc<P>, callers: usize, each: usize) -> Result<Duration, BoxError> {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let pair = Arc::clone(pair);
        tasks.spawn(async move {
            for _ in 0..each {
                pair.pair().await?;
            }
            Ok::<_, BoxError>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}
