//! The toy's store: a small pool of connections to the desk's server.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotency_core::{
    Address, Bid, Claim, Fate, Fence, Holder, Inspect, Keep, Lease, Operation, Outcome, Phase, Record,
    Release, Resolution, Select, Settled, Store, StoreError, StoreErrorKind, Vacant,
};
use idempotency_store_contract::wire::TIME_LIMIT;
use idempotency_store_memory::MemoryStore;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};

use crate::{
    desk::{COMMIT, Desk, MESSAGE, STAGE, ticket_of},
    flaw::Flaw,
};

const CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(crate) struct Client {
    server: String,
    desk: Arc<Desk>,
    flaw: Option<Flaw>,
    seats: Semaphore,
    idle: Mutex<Vec<TcpStream>>,
    /// What a flaw leaves lying about.
    left: Mutex<Vec<TcpStream>>,
}

/// How far a call came.
#[derive(Default)]
struct Progress {
    /// Whether the server may have been told to commit.
    committed: bool,
    /// Whether a part of the last reply came.
    began: bool,
}

impl Client {
    pub(crate) fn new(server: &str, desk: Arc<Desk>, flaw: Option<Flaw>) -> Self {
        let (idle, left) = (Mutex::default(), Mutex::default());
        Self { server: server.to_owned(), desk, flaw, seats: Semaphore::new(CONNECTIONS), idle, left }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Sends a call, twice if that is this store's way, and says what became of it.
    async fn call<T, F>(
        &self,
        address: &Address,
        call: impl FnOnce(Arc<MemoryStore>) -> F + Clone + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let first = self.attempt(address, call.clone()).await;
        match first {
            Err(error) if self.is(Flaw::TriesAgain) => {
                let second = self.attempt(address, call).await;
                second.map_err(|later| if error.fate == Fate::Unknown { error } else { later })
            }
            first => first,
        }
    }

    async fn attempt<T, F>(
        &self,
        address: &Address,
        call: impl FnOnce(Arc<MemoryStore>) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let limit = if self.is(Flaw::HasNoPatience) { Duration::from_millis(4) } else { TIME_LIMIT };
        let failed = |fate, source: &'static str| {
            let fate = if self.is(Flaw::CallsFailuresUndone) { Fate::NotApplied } else { fate };
            StoreError::new(StoreErrorKind::Unavailable, fate).with_source(source)
        };
        let Ok(Ok(_seat)) = timeout(limit, self.seats.acquire()).await else {
            return Err(failed(Fate::NotApplied, "every connection is in use"));
        };
        let idle = self.idle.lock().expect("nobody panics under a lock").pop();
        let stream = match idle {
            Some(stream) => stream,
            None => match timeout(limit, TcpStream::connect(&self.server)).await {
                Ok(Ok(stream)) => stream,
                _ => return Err(failed(Fate::NotApplied, "there is no connection")),
            },
        };
        let mut connection = Connection { client: self, stream: Some(stream) };
        let ticket = self.desk.lay(address, call);
        let mut progress = Progress::default();
        let exchanged = timeout(limit, connection.exchange(ticket, &mut progress)).await;
        let fate = if progress.committed { Fate::Unknown } else { Fate::NotApplied };
        match exchanged {
            Ok(Ok(answered)) => {
                connection.put_back();
                let stranger = "the answer is another call's";
                self.desk.take(answered).unwrap_or_else(|| Err(failed(fate, stranger)))
            }
            Ok(Err(_)) => {
                connection.end(self.is(Flaw::KeepsBrokenConnections));
                let source = if progress.began { HALF } else { "the connection broke" };
                Err(failed(fate, source))
            }
            Err(_) => {
                if self.is(Flaw::BlocksInSilence) {
                    std::thread::sleep(Duration::from_secs(4));
                }
                connection.end(self.is(Flaw::KeepsSilentConnections));
                Err(failed(fate, "the server does not answer"))
            }
        }
    }
}

const HALF: &str = "the connection broke within a reply";

/// A connection in use. Dropped, it ends, as nobody knows what is on its way in it.
struct Connection<'a> {
    client: &'a Client,
    stream: Option<TcpStream>,
}

impl Connection<'_> {
    async fn exchange(&mut self, ticket: u64, progress: &mut Progress) -> std::io::Result<u64> {
        let stream = self.stream.as_mut().expect("a connection in use is there");
        stream.set_nodelay(true)?;
        let mut answered = ticket;
        for kind in [STAGE, COMMIT] {
            progress.committed = kind == COMMIT;
            let mut message = [kind; MESSAGE];
            message[1..].copy_from_slice(&ticket.to_be_bytes());
            stream.write_all(&message).await?;
            stream.read_exact(&mut message[..1]).await?;
            progress.began = kind == COMMIT;
            stream.read_exact(&mut message[1..]).await?;
            let of = ticket_of(&message);
            // Who counts replies instead of reading whose they are is given what was on its way.
            let counts = self.client.is(Flaw::ReusesDroppedConnections);
            answered = if counts && kind == COMMIT { answered } else { of };
        }
        Ok(answered)
    }

    fn put_back(&mut self) {
        self.client.idle.lock().expect("nobody panics under a lock").extend(self.stream.take());
    }

    fn end(&mut self, kept: bool) {
        if kept {
            self.put_back();
        }
        self.stream = None;
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        match self.client.flaw {
            Some(Flaw::ReusesDroppedConnections) => self.put_back(),
            Some(Flaw::LeavesTransactionsOpen) => {
                let mut left = self.client.left.lock().expect("nobody panics under a lock");
                left.extend(self.stream.take());
            }
            _ => {}
        }
    }
}

impl Store for Client {
    async fn claim(&self, op: &Operation, bid: &Bid) -> Result<Claim<Lease>, StoreError> {
        let (asked, sent) = (op.clone(), *bid);
        let claim =
            self.call(op.address(), move |store| async move { store.claim(&asked, &sent).await }).await;
        match claim {
            Err(error) if self.is(Flaw::BelievesHalfAReply) && is_half(&error) => {
                Ok(Claim::Granted(Lease { fence: Fence::from_u64(7), ..unseen(op, bid) }))
            }
            Err(error) if self.is(Flaw::TriesAgainAsAnother) && error.fate == Fate::Unknown => {
                let (asked, sent) = (op.clone(), Bid { holder: Holder::draw(), ..*bid });
                self.call(op.address(), move |store| async move { store.claim(&asked, &sent).await }).await
            }
            claim => claim,
        }
    }

    async fn look(&self, op: &Operation) -> Result<Claim<Vacant>, StoreError> {
        let asked = op.clone();
        self.call(op.address(), |store| async move { store.look(&asked).await }).await
    }

    async fn renew(&self, lease: &Lease, term: Duration) -> Result<Settled, StoreError> {
        let (lease, renews) = (*lease, !self.is(Flaw::RenewsNothing));
        let term = if renews { term } else { Duration::ZERO };
        self.call(&lease.address, move |store| async move { store.renew(&lease, term).await }).await
    }

    async fn complete(&self, lease: &Lease, outcome: &Outcome, keep: Keep) -> Result<Settled, StoreError> {
        let (lease, outcome, once) = (*lease, outcome.clone(), self.is(Flaw::CompletesOnce));
        let settled = self
            .call(&lease.address, move |store| async move {
                let found = store.find(&lease.address).await?;
                match found.map(|record| record.phase) {
                    Some(Phase::Completed { .. }) if once => Ok(Settled::Fenced(None)),
                    _ => store.complete(&lease, &outcome, keep).await,
                }
            })
            .await;
        if self.is(Flaw::EndsInAnyCase) { Ok(Settled::Applied) } else { settled }
    }

    async fn release(&self, lease: &Lease, why: Release) -> Result<Settled, StoreError> {
        let lease = *lease;
        if self.is(Flaw::ReleasesByTheFence) && lease.fence == Fence::from_u64(0) {
            return Ok(Settled::Fenced(None));
        }
        self.call(&lease.address, move |store| async move { store.release(&lease, why).await }).await
    }

    async fn purge(&self, at_most: u32) -> Result<u32, StoreError> {
        let nowhere = Address::from_bytes([0; 32]);
        self.call(&nowhere, move |store| async move { store.purge(at_most).await }).await
    }

    fn max_outcome_bytes(&self) -> usize {
        1 << 16
    }
}

impl Inspect for Client {
    async fn find(&self, address: &Address) -> Result<Option<Record>, StoreError> {
        // As a reader of what is committed: past the locks of those who write.
        let (address, nowhere) = (*address, Address::from_bytes(elsewhere(address)));
        self.call(&nowhere, move |store| async move { store.find(&address).await }).await
    }

    async fn list(
        &self,
        select: Select,
        after: Option<&Address>,
        at_most: u32,
    ) -> Result<Vec<(Address, Record)>, StoreError> {
        let (after, nowhere) = (after.copied(), Address::from_bytes([0; 32]));
        self.call(&nowhere, move |store| async move { store.list(select, after.as_ref(), at_most).await })
            .await
    }

    async fn resolve(
        &self,
        address: &Address,
        fence: Fence,
        resolution: &Resolution,
    ) -> Result<Settled, StoreError> {
        let (address, resolution) = (*address, resolution.clone());
        self.call(&address, move |store| async move { store.resolve(&address, fence, &resolution).await })
            .await
    }
}

fn unseen(op: &Operation, bid: &Bid) -> Lease {
    Lease { attempt: 1, ..Lease::unconfirmed(*op.address(), bid.holder) }
}

fn is_half(error: &StoreError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string() == HALF)
}

/// An address beside this one, which nobody locks for long.
fn elsewhere(address: &Address) -> [u8; 32] {
    address.as_bytes().map(|byte| !byte)
}
