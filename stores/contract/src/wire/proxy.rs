//! A proxy that lets faults befall what passes through it, whatever the protocol.

use std::{io, net::SocketAddr, ops::Bound, ops::RangeBounds, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use super::connection;

/// How long nothing passes before it counts as quiet.
const QUIET: Duration = Duration::from_millis(40);

/// What befalls an exchange: a request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request takes this much longer, and so does the reply.
    Delayed(Duration),
    /// The connection is reset when the request comes, which the server never sees.
    CutBefore,
    /// The server does what it is asked, and the connection is reset before the first byte of the reply is passed on.
    CutAfter,
    /// The connection is reset when half of the reply was passed on.
    CutWithin,
    /// The connection ends in good order when all of the reply but its last byte was passed on.
    CutAtEnd,
    /// The request waits until the fault is healed, and is delivered then, whether or not anybody waits any more. The
    /// reply goes nowhere.
    Late,
    /// The request is taken and never delivered, like everything else that comes on that connection, for ever.
    Silent,
    /// The server does what it is asked, and neither the reply nor anything after it is passed on, for ever. It counts
    /// as struck when the server has.
    SilentReply,
}

/// A proxy before one server. It listens on a port of 127.0.0.1 until it is dropped, and ends its connections then.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    strikes: Strikes,
    acceptor: AbortHandle,
}

impl Proxy {
    /// Listens for clients of the server at `server`, `host:port`. Nothing befalls them until it is told so.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn before(server: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let strikes = Strikes::default();
        let acceptor = tokio::spawn(accept(listener, server.to_owned(), strikes.clone())).abort_handle();
        Ok(Self { address, strikes, acceptor })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// `fault` befalls the exchanges in `which`, counted from this call on; the next one is 1. `1..` is all of them.
    ///
    /// A new connection is none, but a fault without an end befalls it, too, if it would befall the next exchange.
    pub fn strike(&self, fault: Fault, which: impl RangeBounds<usize>) {
        let first = match which.start_bound() {
            Bound::Included(first) => *first,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 1,
        };
        let last = match which.end_bound() {
            Bound::Included(last) => Some(*last),
            Bound::Excluded(beyond) => Some(beyond.saturating_sub(1)),
            Bound::Unbounded => None,
        };
        self.strikes.0.send_modify(|state| {
            let pending = state.pending;
            *state = State { plan: Some(Plan { fault, first, last }), pending, ..State::default() };
        });
    }

    /// Nothing befalls what comes from now on, and late requests are delivered. How many exchanges were struck since
    /// [`strike`](Self::strike) was called.
    pub fn heal(&self) -> usize {
        self.strikes.0.send_modify(|state| state.plan = None);
        self.struck()
    }

    /// How many exchanges were struck since [`strike`](Self::strike) was called.
    pub fn struck(&self) -> usize {
        self.strikes.0.borrow().struck
    }

    /// How many exchanges began since [`strike`](Self::strike) was called, struck or not.
    pub fn exchanges(&self) -> usize {
        self.strikes.0.borrow().exchanges
    }

    /// Waits until `count` exchanges were struck since [`strike`](Self::strike) was called.
    pub async fn reached(&self, count: usize) {
        self.strikes.wait(|state| state.struck >= count).await;
    }

    /// Waits until nothing has passed for a while: a store may have more to say on a connection it is done with.
    pub async fn quiet(&self) {
        let mut passing = self.strikes.0.subscribe();
        passing.mark_unchanged();
        while matches!(timeout(QUIET, passing.changed()).await, Ok(Ok(()))) {}
    }

    /// Waits until the server has done what struck requests asked of it: those whose reply was cut off, and late ones,
    /// which are delivered once the fault is healed.
    pub async fn settled(&self) {
        self.strikes.wait(|state| state.pending == 0).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

/// Which exchanges are to be struck, and how many were: what a proxy shares with its connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Strikes(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    exchanges: usize,
    struck: usize,
    /// How many struck requests the server has not done yet.
    pending: usize,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    fault: Fault,
    first: usize,
    last: Option<usize>,
}

impl Strikes {
    /// What befalls a connection that begins.
    pub(super) fn connecting(&self) -> Option<Fault> {
        let state = self.0.borrow();
        let lasting = |plan: &Plan| plan.last.is_none() && state.exchanges + 1 >= plan.first;
        state.plan.filter(lasting).map(|plan| plan.fault)
    }

    /// Counts an exchange, and says what befalls it.
    pub(super) fn exchange(&self) -> Option<Fault> {
        let mut befalls = None;
        self.0.send_modify(|state| {
            state.exchanges += 1;
            let place = state.exchanges;
            let meant = |plan: &Plan| plan.first <= place && plan.last.is_none_or(|last| place <= last);
            befalls = state.plan.filter(meant).map(|plan| plan.fault);
        });
        befalls
    }

    /// Tells whoever waits for quiet that something passed.
    pub(super) fn passed(&self) {
        self.0.send_modify(|_| {});
    }

    /// Counts a strike.
    pub(super) fn struck(&self) {
        self.0.send_modify(|state| state.struck += 1);
    }

    /// Counts a request as not done yet, until this is dropped.
    pub(super) fn pending(&self) -> Pending {
        self.0.send_modify(|state| state.pending += 1);
        Pending(self.clone())
    }

    pub(super) async fn healed(&self) {
        self.wait(|state| state.plan.is_none()).await;
    }

    async fn wait(&self, until: impl FnMut(&State) -> bool) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.0.subscribe().wait_for(until).await;
    }
}

/// A struck request that the server has not done yet.
pub(super) struct Pending(Strikes);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.pending -= 1);
    }
}

async fn accept(listener: TcpListener, server: String, strikes: Strikes) {
    let server: Arc<str> = server.into();
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        connections.spawn(connection::serve(client, Arc::clone(&server), strikes.clone()));
        while connections.try_join_next().is_some() {}
    }
}
