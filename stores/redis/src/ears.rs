//! Hearing of endings by other stores: one subscription for all who wait, on a connection of its own.
//!
//! It begins with the first wait. Whenever it begins, and begins again after its connection broke, everybody who waits
//! is woken: what ended meanwhile was told to nobody.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{Either, select},
};
use idempotency_core::{Address, Bells, Notify};
use redis::{Client, RedisError, Value, aio::PubSubStream};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{RedisStore, keys::address, link::Copies, script};

/// How soon a subscription that broke is tried again, and how much later if that fails again and again.
const SOON: Duration = Duration::from_millis(50);
const LATER: Duration = Duration::from_secs(5);

/// The subscription, or what it takes to have one.
pub(crate) struct Ears {
    hearing: Arc<Hearing>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Hearing {
    /// The servers that may be asked: any node of a cluster hears what is told to another.
    clients: Vec<Client>,
    channel: String,
    bells: Arc<Bells>,
    patience: Duration,
}

impl Ears {
    pub(crate) fn new(clients: Vec<Client>, channel: String, bells: Arc<Bells>, patience: Duration) -> Self {
        let hearing = Arc::new(Hearing { clients, channel, bells, patience });
        Self { hearing, task: Mutex::default() }
    }

    /// Has somebody listen from now on, if nobody does.
    fn open(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(Arc::clone(&self.hearing).listen()));
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        task.iter().for_each(JoinHandle::abort);
    }
}

impl Hearing {
    async fn listen(self: Arc<Self>) {
        let mut pause = SOON;
        for client in self.clients.iter().cycle() {
            let subscribed = timeout(self.patience, self.subscribe(client)).await;
            if let Ok(Ok(mut told)) = subscribed {
                pause = SOON;
                self.bells.ring_all();
                while let Some(message) = told.next().await {
                    self.ring(message.get_payload_bytes());
                }
            }
            tracing::debug!("the subscription to endings broke and is tried again");
            sleep(pause).await;
            pause = (pause * 2).min(LATER);
        }
    }

    async fn subscribe(&self, client: &Client) -> Result<PubSubStream, RedisError> {
        let (mut sink, told) = client.get_async_pubsub().await?.split();
        sink.subscribe(&self.channel).await?;
        Ok(told)
    }

    fn ring(&self, ended: &[u8]) {
        if let Some(address) = address(ended) {
            self.bells.ring(&address);
        }
    }
}

/// Wakes for endings by any store on the same records.
impl Notify for RedisStore {
    async fn ended(&self, address: &Address) {
        self.ears.open();
        // The bell is heard before the record is marked: an ending in between is not missed.
        let rung = std::pin::pin!(self.bells.rung(address));
        let over = std::pin::pin!(self.is_over(address));
        match select(rung, over).await {
            Either::Right((false, rung)) => rung.await,
            Either::Left(_) | Either::Right((true, _)) => {}
        }
    }
}

impl RedisStore {
    /// Marks the record as waited for, unless it is over already. Where that fails, who waits has to look.
    async fn is_over(&self, address: &Address) -> bool {
        match self.run(&script::WAIT, address, Copies::Welcome, 0, |_| {}).await {
            Ok(in_flight) => in_flight == Value::Int(0),
            Err(_) => false,
        }
    }
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ears").field("channel", &self.hearing.channel).finish_non_exhaustive()
    }
}
