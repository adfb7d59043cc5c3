//! The toy's server: a memory store, and a desk with calls and their answers.
//!
//! A call takes two requests. `stage` puts it before the server, which locks its record for the connection; `commit`
//! does what was staged. A connection that ends takes what it staged with it.

use std::{
    any::Any,
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use idempotency_core::Address;
use idempotency_store_memory::MemoryStore;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::OwnedMutexGuard,
};

pub(crate) const STAGE: u8 = b's';
pub(crate) const COMMIT: u8 = b'c';
/// A kind and a ticket, in requests and replies.
pub(crate) const MESSAGE: usize = 9;

type Answer = Box<dyn Any + Send>;
type Work = Box<dyn FnOnce(Arc<MemoryStore>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send>;

/// Where calls wait for the server, and answers for the client.
#[derive(Default)]
pub(crate) struct Desk {
    store: Arc<MemoryStore>,
    last: AtomicU64,
    calls: Mutex<HashMap<u64, (Address, Work)>>,
    answers: Mutex<HashMap<u64, Answer>>,
    locks: Mutex<HashMap<Address, Arc<tokio::sync::Mutex<()>>>>,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    /// Lays a call on the desk. Its ticket.
    pub(crate) fn lay<T: Send + 'static, F>(
        &self,
        address: &Address,
        call: impl FnOnce(Arc<MemoryStore>) -> F + Send + 'static,
    ) -> u64
    where
        F: Future<Output = T> + Send + 'static,
    {
        let ticket = self.last.fetch_add(1, Ordering::Relaxed);
        let work: Work = Box::new(|store| {
            let done = call(store);
            Box::pin(async move { Box::new(done.await) as Answer })
        });
        self.calls.lock().expect("nobody panics under a lock").insert(ticket, (*address, work));
        ticket
    }

    /// Takes an answer from the desk, if there is one and it is of this kind.
    pub(crate) fn take<T: 'static>(&self, ticket: u64) -> Option<T> {
        let answer = self.answers.lock().expect("nobody panics under a lock").remove(&ticket)?;
        answer.downcast().ok().map(|answer| *answer)
    }

    async fn lock(&self, address: Address) -> OwnedMutexGuard<()> {
        let lock =
            Arc::clone(self.locks.lock().expect("nobody panics under a lock").entry(address).or_default());
        lock.lock_owned().await
    }
}

/// Whose ticket a message bears.
pub(crate) fn ticket_of(message: &[u8; MESSAGE]) -> u64 {
    message[1..].iter().fold(0, |ticket, byte| ticket << 8 | u64::from(*byte))
}

/// Serves the desk on a port of its own, for as long as the runtime lives. Where.
pub(crate) fn serve(desk: &Arc<Desk>) -> String {
    let free = "the operating system gives a port";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect(free);
    listener.set_nonblocking(true).expect(free);
    let address = listener.local_addr().expect(free).to_string();
    let (listener, desk) = (TcpListener::from_std(listener).expect(free), Arc::clone(desk));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let desk = Arc::clone(&desk);
            // A connection that is reset is over, and that is all.
            tokio::spawn(async move { connection(&desk, client).await.err() });
        }
    });
    address
}

async fn connection(desk: &Desk, mut client: TcpStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let mut staged: Vec<(u64, Work, OwnedMutexGuard<()>)> = Vec::new();
    let mut message = [0; MESSAGE];
    loop {
        client.read_exact(&mut message).await?;
        let ticket = ticket_of(&message);
        if message[0] == STAGE {
            let laid = desk.calls.lock().expect("nobody panics under a lock").remove(&ticket);
            if let Some((address, work)) = laid {
                // Whoever waits for a lock and goes away waits no longer.
                let mut nothing = [0];
                let lock = tokio::select! {
                    lock = desk.lock(address) => lock,
                    gone = client.peek(&mut nothing) => return gone.map(drop),
                };
                staged.push((ticket, work, lock));
            }
        } else {
            for (ticket, work, _lock) in staged.drain(..) {
                let answer = work(Arc::clone(&desk.store)).await;
                desk.answers.lock().expect("nobody panics under a lock").insert(ticket, answer);
            }
        }
        client.write_all(&message).await?;
    }
}
