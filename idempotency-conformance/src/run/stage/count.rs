//! How often handlers ran, which the target says itself.

use serde_json::Value;

use super::{Stage, Trouble, lost};
use crate::{vector::Request, wire::Lost};

#[derive(Debug, thiserror::Error)]
pub(super) enum CountError {
    #[error("GET /counter")]
    Lost(#[source] Lost),
    #[error("GET /counter answered {0}")]
    Status(u16),
    #[error("GET /counter answered no JSON object with a number \"count\"")]
    NoNumber,
}

/// What asks for the count.
pub(super) fn counter() -> Request {
    Request { method: Some("GET".to_owned()), path: "/counter".to_owned(), ..Request::default() }
}

impl Stage<'_> {
    pub(super) async fn reset(&mut self) -> Result<(), Trouble> {
        let request = Request { path: "/reset".to_owned(), is_foreign: true, ..Request::default() };
        let message = self.message(&request);
        let answer = async { self.open().await?.exchange(&message).await }.await;
        let answer = answer.map_err(lost("reset"))?;
        if !answer.is_success() {
            return Err(Trouble::NoReset { status: answer.status });
        }
        Ok(())
    }

    pub(super) async fn count(&self) -> Result<u64, Trouble> {
        let message = self.message(&counter());
        let answer = async { self.open().await?.exchange(&message).await }.await;
        let answer = answer.map_err(|lost| Trouble::NoCount(CountError::Lost(lost)))?;
        if answer.status != 200 {
            return Err(Trouble::NoCount(CountError::Status(answer.status)));
        }
        let counted: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let count = counted.and_then(|counted| counted["count"].as_u64());
        count.ok_or(Trouble::NoCount(CountError::NoNumber))
    }
}
