//! Connections that pass from call to call.
//!
//! A pool asks each connection that comes back whether it still lives. That is a round trip, as long as a call's own, so
//! a connection whose answer was read whole goes to the next call instead: to one that waits, or to one that comes soon.
//! It goes back in any case after a while: the pool may be shared, and others wait for its connections, too.

use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::Poll,
    time::Duration,
};

use sqlx::{PgPool, Postgres, pool::PoolConnection};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// How long a connection waits for the next call.
const SOON: Duration = Duration::from_millis(2);

/// How long a connection stays away from its pool in all, but for its last call.
const A_WHILE: Duration = Duration::from_millis(50);

/// How long giving a connection back may take before it is closed.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The connections of one store that are between two calls, and the calls that wait for one.
#[derive(Default)]
pub(crate) struct Relay(Mutex<State>);

#[derive(Default)]
struct State {
    resting: Vec<(Baton, Instant)>,
    waiting: VecDeque<oneshot::Sender<Baton>>,
    sweep: Option<JoinHandle<()>>,
}

/// A connection, and when it left its pool.
#[derive(Debug)]
pub(crate) struct Baton {
    pub(crate) connection: PoolConnection<Postgres>,
    left: Instant,
}

impl Relay {
    /// A connection that another call had, or one from the pool, whichever is there first.
    pub(crate) async fn take(self: &Arc<Self>, pool: &PgPool) -> Result<Baton, sqlx::Error> {
        let passed = {
            let mut state = self.state();
            if let Some((baton, _)) = state.resting.pop() {
                return Ok(baton);
            }
            // Whoever got one from the pool waits no more. While no call succeeds, nothing else clears them away.
            while state.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                state.waiting.pop_front();
            }
            let (pass, passed) = oneshot::channel();
            state.waiting.push_back(pass);
            passed
        };
        let (mut passed, mut acquired) = (pin!(passed), pin!(self.acquire(pool)));
        poll_fn(|cx| {
            if let Poll::Ready(Ok(baton)) = passed.as_mut().poll(cx) {
                return Poll::Ready(Ok(baton));
            }
            acquired.as_mut().poll(cx)
        })
        .await
    }

    /// A connection from the pool. While the pool grows, that may be a new one, and a call that is served sooner by
    /// another's connection would leave the server with a session begun for nothing: the new one is made all the same,
    /// and goes to the next call.
    async fn acquire(self: &Arc<Self>, pool: &PgPool) -> Result<Baton, sqlx::Error> {
        if pool.size() >= pool.options().get_max_connections() {
            return Baton::acquire(pool).await;
        }
        let (relay, pool) = (Arc::clone(self), pool.clone());
        let (give, given) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(Ok(unwanted)) = give.send(Baton::acquire(&pool).await) {
                relay.pass(unwanted);
            }
        });
        given.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
    }

    /// Passes on a connection that is ready for another call.
    pub(crate) fn pass(self: &Arc<Self>, mut baton: Baton) {
        if baton.left.elapsed() >= A_WHILE {
            return baton.give_back();
        }
        let mut state = self.state();
        while let Some(waiting) = state.waiting.pop_front() {
            match waiting.send(baton) {
                Ok(()) => return,
                Err(refused) => baton = refused, // it found another one, or waits no more
            }
        }
        state.resting.push((baton, Instant::now()));
        if state.sweep.as_ref().is_none_or(JoinHandle::is_finished) {
            state.sweep = Some(tokio::spawn(sweep(Arc::downgrade(self))));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

/// Whoever drops a store may have no runtime left that could give its connections back.
impl Drop for State {
    fn drop(&mut self) {
        for (baton, _) in self.resting.drain(..) {
            drop(baton.connection.detach());
        }
    }
}

impl Baton {
    async fn acquire(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: pool.acquire().await?, left: Instant::now() })
    }

    /// Gives the connection back to its pool, which asks whether it still lives and would wait for the answer for ever.
    fn give_back(mut self) {
        tokio::spawn(timeout(PATIENCE, async move { self.connection.return_to_pool().await }));
    }
}

/// Gives back what rested for too long, until nothing rests.
async fn sweep(relay: Weak<Relay>) {
    loop {
        sleep(SOON).await;
        let Some(relay) = relay.upgrade() else { return };
        let mut state = relay.state();
        let rested = state.resting.partition_point(|(_, since)| since.elapsed() >= SOON);
        state.resting.drain(..rested).for_each(|(baton, _)| baton.give_back());
        if state.resting.is_empty() {
            state.sweep = None;
            return;
        }
    }
}
