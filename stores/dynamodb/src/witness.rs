//! What is seen of a call's attempts: whether a failed write may have happened, and what time the answers show.
//!
//! The SDK sends a request again by itself, so the error it ends with tells the fate of the last attempt alone. A witness
//! sees each.

use std::{
    error::Error,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        http::HttpResponse,
        interceptors::{
            BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
            FinalizerInterceptorContextRef,
        },
    },
    error::{BoxError, ConnectorError},
    primitives::{DateTime, DateTimeFormat},
};
use hyper_util::client::legacy;
use idempotency_core::{Fate, clock::Timestamp};

use crate::clock::ServiceClock;

/// The statuses with which the service refuses a request. With others it has failed, or somebody else answered.
const REFUSALS: Range<u16> = 400..500;

/// What every answer of the service bears.
const REQUEST_ID: &str = "x-amzn-requestid";

/// Sees the attempts of one call of the store.
#[derive(Debug, Clone)]
pub(crate) struct Witness(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    clock: Arc<ServiceClock>,
    /// How many attempts were sent, less those that are known to have changed nothing.
    open: AtomicUsize,
    /// When the attempt that is out was sent, on the host's clock.
    sent: Mutex<Option<Timestamp>>,
}

impl Witness {
    /// A witness whose clock learns from the answers.
    pub(crate) fn new(clock: Arc<ServiceClock>) -> Self {
        Self(Arc::new(Seen { clock, open: AtomicUsize::new(0), sent: Mutex::new(None) }))
    }

    /// Whether any attempt so far may have changed something.
    pub(crate) fn fate(&self) -> Fate {
        if self.0.open.load(Ordering::SeqCst) == 0 { Fate::NotApplied } else { Fate::Unknown }
    }
}

impl Seen {
    fn note_sent(&self, at: Option<Timestamp>) -> Option<Timestamp> {
        std::mem::replace(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner), at)
    }
}

impl Intercept for Witness {
    fn name(&self) -> &'static str {
        "idempotency_store_dynamodb::Witness"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.note_sent(Some(self.0.clock.host_now()));
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let sent = self.0.sent.lock().unwrap_or_else(PoisonError::into_inner).to_owned();
        let date = context.response().headers().get("date").filter(|_| is_of_the_service(context.response()));
        let date = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        if let (Some(sent), Some(date)) = (sent, date) {
            self.0.clock.saw(date.secs(), sent, self.0.clock.host_now());
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let was_sent = self.0.note_sent(None).is_some();
        let Some(Err(error)) = context.output_or_error() else { return Ok(()) };
        let refuses = |response: &HttpResponse| {
            is_of_the_service(response) && REFUSALS.contains(&response.status().as_u16())
        };
        let refused = error.is_operation_error() && context.response().is_some_and(refuses);
        if was_sent && (refused || error.as_connector_error().is_some_and(never_left)) {
            self.0.open.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Whether nobody in between answered in the service's place, who has a clock of his own and knows nothing of the write.
fn is_of_the_service(response: &HttpResponse) -> bool {
    response.headers().get(REQUEST_ID).is_some()
}

/// Whether a request certainly did not leave this host: there was no connection, or it was no request.
fn never_left(error: &ConnectorError) -> bool {
    let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
    error.is_user()
        || causes.any(|cause| cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect))
}
