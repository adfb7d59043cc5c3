//! Reads a body into memory.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, future::poll_immediate};
use http::HeaderMap;
use http_body::{Body, Frame};
use idempotency_core::Address;
use tokio::task::coop::unconstrained;

use crate::{
    body::{Held, RequestBody},
    caller::Presence,
    error::{BoxError, Panic},
    observability::log,
};

/// How long a response body is read on after its client has left.
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// A body that is not as long as its answer's head says cannot be told from one that was cut.
pub(crate) const WRONG_LENGTH: &str = "the response body is not as long as its head declares";

/// Why a body could not be read into memory.
#[derive(Debug)]
pub(crate) enum GatherError {
    /// It is longer than allowed.
    TooLong,
    /// It ended half way.
    Broken(BoxError),
}

/// The whole body, unless it is longer than `limit` bytes.
pub(crate) async fn gather<B>(body: B, limit: usize) -> Result<Held, GatherError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut gathered = Gathered::default();
    gather_into(&mut gathered, pin!(body), limit).await?;
    Ok(gathered.into_held())
}

/// The whole body; or, where it is longer than `limit` bytes or ends half way, a body that gives all of it again.
pub(crate) async fn gather_or_resume<B>(body: B, limit: usize) -> Result<Held, RequestBody<B>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = Box::pin(body);
    let mut gathered = Gathered::default();
    match gather_into(&mut gathered, body.as_mut(), limit).await {
        Ok(()) => Ok(gathered.into_held()),
        Err(GatherError::TooLong) => Err(RequestBody::resumed(gathered.into_held(), None, body)),
        Err(GatherError::Broken(error)) => Err(RequestBody::resumed(gathered.into_held(), Some(error), body)),
    }
}

async fn gather_into<B>(
    gathered: &mut Gathered,
    mut body: Pin<&mut B>,
    limit: usize,
) -> Result<(), GatherError>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    while !body.is_end_stream() {
        let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await else { break };
        gathered.push(frame.map_err(|error| GatherError::Broken(error.into()))?);
        if gathered.len() > limit {
            return Err(GatherError::TooLong);
        }
        if !body.is_end_stream() {
            tokio::task::coop::consume_budget().await; // a body that is always ready must let others run
        }
    }
    Ok(())
}

/// What became of a response body of known size.
pub(crate) enum Collected {
    Whole(Held),
    Broken,
    /// The caller left, and the body did not end within [`DRAIN_LIMIT`] of that.
    Abandoned,
}

/// The whole response body of `length` bytes; its panics and errors are caught.
pub(crate) async fn collect<B>(body: B, length: usize, presence: &Presence, address: &Address) -> Collected
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut gathered = Gathered::default();
    // Most bodies are in memory and here at once: nobody leaves meanwhile, and nothing waits for it.
    let at_once = poll_immediate(gather_into(&mut gathered, body.as_mut(), length));
    let end = match AssertUnwindSafe(at_once).catch_unwind().await {
        Ok(Some(end)) => Ok(end),
        Ok(None) => match Box::pin(wait_for(&mut gathered, body, length, presence)).await {
            Some(end) => end,
            None => return Collected::Abandoned,
        },
        Err(panic) => Err(panic),
    };
    match end {
        Ok(Ok(())) if gathered.len() == length => Collected::Whole(gathered.into_held()),
        Ok(_) => {
            log::broke_off(address);
            Collected::Broken
        }
        Err(_) => {
            log::panicked(address);
            Collected::Broken
        }
    }
}

/// The rest of a body, unless its caller left too long ago.
async fn wait_for<B>(
    gathered: &mut Gathered,
    body: Pin<&mut B>,
    length: usize,
    presence: &Presence,
) -> Option<Result<Result<(), GatherError>, Panic>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let abandoned = async {
        let left_at = presence.left().await;
        tokio::time::sleep_until(left_at + DRAIN_LIMIT).await;
    };
    tokio::select! {
        biased;
        end = AssertUnwindSafe(gather_into(gathered, body, length)).catch_unwind() => Some(end),
        // Whatever a body that is always ready has left of its task's budget.
        () = unconstrained(abandoned) => None,
    }
}

/// Frames joined so far. A body of one frame, as most are, is not copied.
#[derive(Default)]
struct Gathered {
    first: Bytes,
    joined: BytesMut,
    trailers: Option<Box<HeaderMap>>,
}

impl Gathered {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, frame: Frame<Bytes>) {
        let bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                self.trailers.get_or_insert_default().extend(trailers);
                return;
            }
        };
        if self.len() == 0 {
            self.first = bytes;
        } else {
            self.joined.extend_from_slice(&std::mem::take(&mut self.first));
            self.joined.extend_from_slice(&bytes);
        }
    }

    fn into_held(self) -> Held {
        let bytes = if self.joined.is_empty() { self.first } else { self.joined.freeze() };
        Held { bytes, trailers: self.trailers }
    }
}
