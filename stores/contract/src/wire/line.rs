//! The stage of a law: a store whose line can be broken, and one that sees what is true.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use idempotency_core::{Address, Bid, Claim, Holder, Inspect, OnLapse, Operation, Record, Store, StoreError};

use super::{Proxy, Wired};
use crate::{
    Violation,
    scene::{LONG, operation},
    violation::demand_eq,
};

/// How long nothing happens between two tries.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Line<S> {
    pub(super) proxy: Proxy,
    /// The store behind the proxy.
    pub(super) far: Arc<S>,
    /// The store beside it, on the same records.
    pub(super) near: Arc<S>,
    /// When the store behind the proxy gives a call up.
    pub(super) time_limit: Duration,
    /// How long a call over a whole line may take to be answered.
    pub(super) recovery: Duration,
    /// How many calls the server can bear at once.
    pub(super) callers: usize,
}

impl<S: Store + Inspect> Line<S> {
    pub(super) async fn open<W: Wired<Store = S>>(wired: &W, server: &str) -> io::Result<Self> {
        let proxy = Proxy::before(server).await?;
        let far = Arc::new(wired.open(&proxy.address().to_string()).await);
        let near = Arc::new(wired.open(server).await);
        let (time_limit, recovery, callers) = (wired.time_limit(), wired.recovery(), wired.callers());
        Ok(Self { proxy, far, near, time_limit, recovery, callers })
    }

    /// Sends what may be sent again, over a line that is whole, until it is answered: a connection that a fault left
    /// behind may fail once more.
    pub(super) async fn tried<T, F>(&self, call: impl Fn() -> F) -> Result<T, Violation>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        tried(self.recovery, call).await
    }

    /// Demands that claims through the proxy are granted again, the line being whole.
    pub(super) async fn works(&self) -> Result<(), Violation> {
        let (op, bid) = (operation(), bid());
        let claim = self.tried(|| self.far.claim(&op, &bid)).await?;
        demand_eq!(claim.name(), "granted", "a claim over a line that is whole again is granted");
        Ok(())
    }

    /// The same, and nothing passes any more: what comes next is the next exchange.
    pub(super) async fn rests(&self) -> Result<(), Violation> {
        self.works().await?;
        self.proxy.quiet().await;
        Ok(())
    }

    /// What is true of an operation.
    pub(super) async fn record(&self, address: &Address) -> Result<Option<Record>, Violation> {
        self.tried(|| self.near.find(address)).await
    }

    /// Demands that the key gets free, long before a lease given to it would have lapsed.
    pub(super) async fn freed(&self, op: &Operation) -> Result<(), Violation> {
        let begun = Instant::now();
        loop {
            let seen = self.tried(|| self.near.look(op)).await?;
            if matches!(seen, Claim::Granted(_)) {
                return Ok(());
            }
            if begun.elapsed() > self.recovery {
                return Err(Violation::new("a key nobody runs is free long before its lease lapses", &seen));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A bid by a new holder whose lease and retention outlast the law.
pub(super) fn bid() -> Bid {
    Bid { holder: Holder::draw(), lease: LONG, retention: LONG, on_lapse: OnLapse::TakeOver }
}

/// Like [`Line::tried`], for a task of its own.
pub(super) async fn tried<T, F>(recovery: Duration, call: impl Fn() -> F) -> Result<T, Violation>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let begun = Instant::now();
    loop {
        match tokio::time::timeout(recovery, call()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) if begun.elapsed() > recovery => {
                return Err(Violation::new("a call over a whole line is answered", &error));
            }
            Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
            Err(elapsed) => return Err(Violation::new("a call over a whole line is answered", &elapsed)),
        }
    }
}
