//! Waking who waits for a record that ends elsewhere.
//!
//! A waiter flags the record first, and only the ending of a flagged record is told: a `NOTIFY` in each completion would
//! take a lock of the whole database each time. It is told after the ending was committed, by a task that tells of many
//! at once. A store that has waiters listens on one connection. What it could not hear, because it had no connection or
//! had lost it, it takes for an ending of everything.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use idempotency_core::{Address, Bells};
use sqlx::{
    Executor,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{lines::Lines, statements::Statement};

/// How many endings may wait to be told; beyond that their waiters find out by looking.
const UNTOLD: usize = 1_024;

/// How many endings one statement tells.
const TOLD_AT_ONCE: usize = 128;

/// How soon a listener that lost its connection, or got none, tries again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a listener that hears nothing takes its connection to live.
const SILENCE: Duration = Duration::from_secs(30);

/// What rings when a record may have ended, here or elsewhere.
pub(crate) struct Waking {
    bells: Arc<Bells>,
    wire: Option<Wire>,
}

/// What tells other processes, and hears from them.
struct Wire {
    lines: Lines,
    notify: Statement,
    channel: Arc<str>,
    listener: Mutex<Option<JoinHandle<()>>>,
    teller: Mutex<Option<mpsc::Sender<Address>>>,
}

impl Waking {
    /// Without a channel, only endings by this store and its clones are heard of.
    pub(crate) fn new(lines: Lines, notify: Statement, channel: Option<String>) -> Self {
        let wire = channel.map(|channel| Wire {
            lines,
            notify,
            channel: channel.into(),
            listener: Mutex::default(),
            teller: Mutex::default(),
        });
        Self { bells: Arc::default(), wire }
    }

    pub(crate) const fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// The channel that other processes listen to, if they do.
    pub(crate) fn channel(&self) -> Option<&str> {
        self.wire.as_ref().map(|wire| &*wire.channel)
    }

    /// Tells other processes, soon, that a flagged record ended.
    pub(crate) fn tell(&self, address: &Address) {
        if let Some(wire) = &self.wire {
            wire.tell(*address);
        }
    }

    /// Makes sure that other processes are heard. Whether they ever will be.
    pub(crate) fn listen(&self) -> bool {
        let Some(wire) = &self.wire else { return false };
        wire.listen(&self.bells);
        true
    }

    /// Stops listening.
    pub(crate) fn stop(&self) {
        if let Some(wire) = &self.wire {
            wire.stop();
        }
    }
}

impl Drop for Waking {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Wire {
    fn tell(&self, ended: Address) {
        let mut teller = self.teller.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = match teller.as_ref().map(|teller| teller.try_send(ended)) {
            Some(Ok(()) | Err(TrySendError::Full(_))) => return,
            Some(Err(TrySendError::Closed(ended))) => ended, // its runtime is gone
            None => ended,
        };
        let (sender, endings) = mpsc::channel(UNTOLD);
        let _ = sender.try_send(untold); // there is room in a new channel
        *teller = Some(sender);
        tokio::spawn(tell_all(endings, self.lines.clone(), self.notify.clone(), Arc::clone(&self.channel)));
    }

    fn listen(&self, bells: &Arc<Bells>) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.as_ref().is_none_or(JoinHandle::is_finished) {
            let options = PgConnectOptions::clone(&self.lines.pool().connect_options());
            *listener = Some(tokio::spawn(listen(options, Arc::clone(&self.channel), Arc::clone(bells))));
        }
    }

    fn stop(&self) {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            listener.abort();
        }
        *self.teller.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Tells of endings until nobody can send any more. What cannot be told is left to the waiters, who look.
async fn tell_all(mut endings: mpsc::Receiver<Address>, lines: Lines, notify: Statement, channel: Arc<str>) {
    let mut ended = Vec::new();
    while endings.recv_many(&mut ended, TOLD_AT_ONCE).await > 0 {
        let addresses: Vec<String> = ended.drain(..).map(|address| told(&address)).collect();
        let tell = || notify.query().bind(&*channel).bind(&addresses);
        if let Err(error) = lines.read(lines.deadline(), tell).await {
            tracing::debug!(kind = error.kind.name(), "who waits on other hosts was not told of endings");
        }
    }
}

/// Rings for what is told, until it is aborted.
async fn listen(options: PgConnectOptions, channel: Arc<str>, bells: Arc<Bells>) {
    loop {
        if let Ok(mut listener) = listener(&options, &channel).await {
            bells.ring_all(); // for what ended while nobody listened
            hear(&mut listener, &bells).await;
        }
        sleep(PAUSE).await;
    }
}

async fn listener(options: &PgConnectOptions, channel: &str) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(SILENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(channel).await?;
    Ok(listener)
}

/// Rings for what is told while the connection lives.
async fn hear(listener: &mut PgListener, bells: &Bells) {
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => match heard(notification.payload()) {
                Some(address) => bells.ring(&address),
                None => bells.ring_all(),
            },
            Ok(Ok(None) | Err(_)) => return,
            Err(_) => match timeout(SILENCE, listener.execute("SELECT 1")).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return,
            },
        }
    }
}

/// What is told of an address: enough to find its bell.
pub(crate) fn told(address: &Address) -> String {
    address.to_string()
}

/// An address that has the same bell.
fn heard(told: &str) -> Option<Address> {
    let first = u8::from_str_radix(told.get(..2)?, 16).ok()?;
    let mut bytes = [0; 32];
    bytes[0] = first;
    Some(Address::from_bytes(bytes))
}
