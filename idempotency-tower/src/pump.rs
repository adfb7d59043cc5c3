//! Reads a streamed response body for the run, keeps a copy, and feeds the client from it.
//!
//! The pump belongs to the run, not to the connection: a slow or gone client delays nothing. What makes the answer
//! whole, the end of the stream, the trailers or the last byte of a declared length, is withheld until the completion
//! is stored; nobody may hold a whole answer whose retry would run again.

use std::{future::poll_fn, panic::AssertUnwindSafe, pin::Pin};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame};
use idempotency_core::{Address, Store};
use tracing::{Instrument, instrument::WithSubscriber};

use crate::{
    body::Held,
    closing::{Captured, Closed, Closing},
    convert::strip_markers,
    error::BoxError,
    gather::{DRAIN_LIMIT, WRONG_LENGTH},
    observability::log,
    pipe::{End, Reader, Writer, pipe},
};

/// How far a run may be ahead of its client once nothing is kept any more, in bytes.
const AHEAD: usize = 64 * 1024;

pub(crate) struct Pump<S: Store, P> {
    body: Pin<Box<P>>,
    writer: Writer,
    address: Address,
    /// The run, until its ending is settled.
    closing: Option<Closing<S>>,
    cap: usize,
    copy: BytesMut,
    trailers: Option<Box<HeaderMap>>,
    marker: HeaderName,
    declared: Option<u64>,
    seen: u64,
    withheld: Bytes,
}

/// What a body gave.
enum Given {
    Frame(Frame<Bytes>),
    End,
    Broken(BoxError),
    Panicked,
    /// The client left, and the run is settled or did not end within [`DRAIN_LIMIT`] of that.
    Abandoned,
}

/// Another run took this one's place: its answer must not end as if it counted.
struct TakenOver;

impl<S, P> Pump<S, P>
where
    S: Store,
    P: Body<Data = Bytes> + Send + 'static,
    P::Error: Into<BoxError>,
{
    /// Starts a pump in a task of its own. `closing` is none when the run has ended already; `exact` is the length the
    /// reader announces, `declared` the one the head does; `marker` is taken off the trailers.
    pub(crate) fn start(
        body: P,
        closing: Option<Closing<S>>,
        address: Address,
        exact: Option<u64>,
        declared: Option<u64>,
        marker: HeaderName,
    ) -> Reader {
        let (writer, reader) = pipe(exact);
        let pump = Self {
            body: Box::pin(body),
            writer,
            address,
            cap: closing.as_ref().map_or(0, Closing::cap),
            closing,
            copy: BytesMut::new(),
            trailers: None,
            marker,
            declared,
            seen: 0,
            withheld: Bytes::new(),
        };
        tokio::spawn(pump.run().in_current_span().with_current_subscriber());
        reader
    }

    async fn run(mut self) {
        let end = loop {
            let step = match self.next().await {
                Given::Frame(frame) => self.pass(frame).await,
                Given::End => break self.end().await,
                Given::Broken(error) => {
                    log::broke_off(&self.address);
                    break self.break_off(Captured::Broken, error).await;
                }
                Given::Panicked => {
                    log::panicked(&self.address);
                    break self.break_off(Captured::Broken, "the response body panicked".into()).await;
                }
                Given::Abandoned => {
                    break self.break_off(Captured::Abandoned, "the client left".into()).await;
                }
            };
            if let Err(TakenOver) = step {
                break taken_over();
            }
        };
        self.writer.end(end);
    }

    async fn next(&mut self) -> Given {
        tokio::task::coop::consume_budget().await; // a body that is always ready must let others run
        let body = &mut self.body;
        let writer = &self.writer;
        let is_settled = self.closing.is_none();
        let abandoned = async {
            let left_at = writer.left().await;
            if !is_settled {
                tokio::time::sleep_until(left_at + DRAIN_LIMIT).await;
            }
        };
        tokio::select! {
            biased; // or a body that is always ready would be read for ever
            () = abandoned => Given::Abandoned,
            frame = AssertUnwindSafe(poll_fn(|cx| body.as_mut().poll_frame(cx))).catch_unwind() => match frame {
                Ok(Some(Ok(frame))) => self.counted(frame),
                Ok(Some(Err(error))) => Given::Broken(error.into()),
                Ok(None) if self.declared.is_some_and(|declared| self.seen < declared) => {
                    Given::Broken(WRONG_LENGTH.into())
                }
                Ok(None) => Given::End,
                Err(_) => Given::Panicked,
            },
        }
    }

    fn counted(&mut self, frame: Frame<Bytes>) -> Given {
        self.seen += frame.data_ref().map_or(0, Bytes::len) as u64;
        if self.declared.is_some_and(|declared| self.seen > declared) {
            return Given::Broken(WRONG_LENGTH.into());
        }
        Given::Frame(frame)
    }

    async fn pass(&mut self, frame: Frame<Bytes>) -> Result<(), TakenOver> {
        let bytes = match frame.into_data() {
            Ok(bytes) => bytes,
            Err(frame) => {
                let trailers = self.trailers.get_or_insert_default();
                trailers.extend(frame.into_trailers().unwrap_or_default());
                return Ok(());
            }
        };
        if self.seen > self.cap as u64 {
            // Whatever the ending, a client that does not read must not hold it up.
            self.copy = BytesMut::new();
            self.close(Captured::TooLarge).await?;
        } else if self.closing.as_ref().is_some_and(Closing::keeps_body) {
            self.copy.extend_from_slice(&bytes);
        }
        self.write(bytes);
        self.writer.room(self.ahead()).await;
        Ok(())
    }

    /// Hands bytes to the client, but for the one that would make a declared length whole too early.
    fn write(&mut self, mut bytes: Bytes) {
        self.writer.write(&std::mem::take(&mut self.withheld));
        if self.closing.is_some() && self.declared.is_some_and(|declared| self.seen >= declared) {
            self.withheld = bytes.split_off(bytes.len().saturating_sub(1));
        }
        self.writer.write(&bytes);
    }

    /// Until the run is settled the cap is the bound; then back-pressure is.
    fn ahead(&self) -> usize {
        if self.closing.is_some() { usize::MAX } else { AHEAD }
    }

    async fn end(&mut self) -> End {
        let held = Held { bytes: self.copy.split().freeze(), trailers: self.trailers.clone() };
        if let Err(TakenOver) = self.close(Captured::Whole(held)).await {
            return taken_over();
        }
        self.writer.write(&std::mem::take(&mut self.withheld));
        End::Whole(self.trailers.take().map(|mut trailers| {
            strip_markers(&mut trailers, &self.marker);
            *trailers
        }))
    }

    async fn break_off(&mut self, captured: Captured, error: BoxError) -> End {
        match self.close(captured).await {
            Ok(()) => End::Broken(error),
            Err(TakenOver) => taken_over(),
        }
    }

    async fn close(&mut self, captured: Captured) -> Result<(), TakenOver> {
        let Some(closing) = self.closing.take() else { return Ok(()) };
        match closing.close(captured).await {
            Closed::Settled => Ok(()),
            Closed::TakenOver(_) => Err(TakenOver),
        }
    }
}

fn taken_over() -> End {
    End::Broken("another run took this one's place".into())
}
