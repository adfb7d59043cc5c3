//! What errors of reqwest say.

use std::error::Error;

use ::reqwest::StatusCode;

use super::{Applied, Classifier, find};

/// Reads off an error of reqwest, or one that wraps such an error, whether the request did something.
///
/// | error | says |
/// |---|---|
/// | of the builder: an address or a header that is none | nothing happened |
/// | of connecting: no such name, refused, no TLS, not in time | nothing happened |
/// | a status by which a server declines to act: 400, 401, 402, 403, 404, 405, 410, 411, 413, 414, 415, 417, 421, 422, 425, 426, 428, 429, 431, 451 | nothing happened |
/// | any other status: 5xx of course, and 408 (the server may have had enough of the request), 409 and 412 (it may be this very request, sent twice, that is in the way of itself), 423, 424, 499 | nobody knows |
/// | any other error: a time-out after connecting, a connection that broke, a redirection, a body that ends early | nobody knows |
///
/// A status is an error only once [`error_for_status`](::reqwest::Response::error_for_status) was called. A time-out of
/// the whole request that comes while it still connects counts as nobody knows: set a `connect_timeout` below it.
///
/// Let no redirection be followed where something is done (`redirect::Policy::none()`): whether it was the first server
/// or the one it redirects to that could not be reached, reqwest does not say.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReqwestErrors;

impl ReqwestErrors {
    /// What the status of an answer says.
    pub fn of_status(status: StatusCode) -> Applied {
        match status.as_u16() {
            400..=405 | 410 | 411 | 413..=415 | 417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 | 451 => {
                Applied::No
            }
            _ => Applied::Unknown,
        }
    }
}

impl Classifier for ReqwestErrors {
    fn classify(&self, error: &(dyn Error + 'static)) -> Applied {
        let Some(error) = find::<::reqwest::Error>(error) else { return Applied::Unknown };
        match error.status() {
            Some(status) => Self::of_status(status),
            None if error.is_builder() || error.is_connect() => Applied::No,
            None => Applied::Unknown,
        }
    }
}
