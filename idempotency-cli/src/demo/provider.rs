//! The provider: it sends replies, and honours no idempotency key.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::sleep;

use super::chance::{Answer, Chance};

/// A reply that was sent, and which messages it answers.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) conversation: u32,
    pub(super) messages: Vec<u32>,
    pub(super) key: Option<String>,
}

/// What was sent, in order. What is here a customer has read.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Sent>>>);

impl Log {
    fn open(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a reply was sent under this key.
    pub(super) fn knows(&self, key: &str) -> bool {
        self.open().iter().any(|sent| sent.key.as_deref() == Some(key))
    }

    /// How often a message was answered.
    pub(super) fn answers(&self, conversation: u32, message: u32) -> usize {
        let answers = |sent: &&Sent| sent.conversation == conversation && sent.messages.contains(&message);
        self.open().iter().filter(answers).count()
    }

    pub(super) fn replies(&self) -> usize {
        self.open().len()
    }
}

#[derive(Clone)]
pub(super) struct Provider {
    chance: Chance,
    pub(super) log: Log,
}

#[derive(Debug, thiserror::Error)]
#[error("the provider did not answer in time")]
pub(super) struct TimedOut;

impl Provider {
    pub(super) fn new(chance: Chance) -> Self {
        Self { chance, log: Log::default() }
    }

    /// Sends a reply. An error says nothing about whether it was sent.
    pub(super) async fn send(&self, reply: Sent) -> Result<(), TimedOut> {
        let answer = self.chance.answer();
        sleep(self.chance.millis(1, 5)).await;
        if answer == Answer::TimeoutBeforeSend {
            return Err(TimedOut);
        }
        self.log.open().push(reply);
        if answer == Answer::TimeoutAfterSend { Err(TimedOut) } else { Ok(()) }
    }
}
