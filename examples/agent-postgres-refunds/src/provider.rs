//! A payment provider that counts money, and sometimes does not answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A payment provider. Clones share its books.
#[derive(Debug, Clone, Default)]
pub struct Provider(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    refunds: Vec<Refund>,
    next: Vec<Mood>,
}

/// A refund that was paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// The order it is for.
    pub order: String,
    /// How much, in cents.
    pub cents: u64,
    /// The idempotency key it was asked for under.
    pub key: String,
}

/// How the provider takes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It pays and answers.
    Fine,
    /// It pays, and its answer is lost.
    AnswerLost,
    /// It refuses, and says so.
    Refuses,
}

/// Why there is no answer, or a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Nobody knows whether it paid.
    #[error("the provider did not answer")]
    NoAnswer,
    /// It did not pay.
    #[error("the provider refused the refund")]
    Refused,
}

impl Provider {
    fn open(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next requests so, then all others well.
    pub fn will(&self, moods: &[Mood]) {
        self.open().next = moods.iter().rev().copied().collect();
    }

    /// Pays a refund.
    ///
    /// # Errors
    /// [`ProviderError`]: only one of the two says that nothing was paid.
    pub async fn refund(&self, order: &str, cents: u64, key: &str) -> Result<usize, ProviderError> {
        tokio::task::yield_now().await;
        let mut books = self.open();
        let mood = books.next.pop().unwrap_or(Mood::Fine);
        if mood == Mood::Refuses {
            return Err(ProviderError::Refused);
        }
        books.refunds.push(Refund { order: order.to_owned(), cents, key: key.to_owned() });
        let number = books.refunds.len();
        if mood == Mood::AnswerLost { Err(ProviderError::NoAnswer) } else { Ok(number) }
    }

    /// Every refund that was paid.
    pub fn paid(&self) -> Vec<Refund> {
        self.open().refunds.clone()
    }

    /// The number of the refund that was paid under `key`, if one was: what a reconciler asks.
    pub fn look_up(&self, key: &str) -> Option<usize> {
        self.open().refunds.iter().position(|refund| refund.key == key).map(|place| place + 1)
    }
}
