//! An answer as an error: what is left to answer with where the request is gone.

use std::{cell::RefCell, fmt};

use actix_web::{HttpResponse, ResponseError, http::StatusCode};

/// An answer to a request that the services inside kept, by a panic or by failing. Actix sends no response without its
/// request, but an error; the client sees no difference.
pub(crate) struct Unaccompanied {
    status: StatusCode,
    response: RefCell<Option<HttpResponse>>,
}

impl Unaccompanied {
    pub(crate) fn new(response: HttpResponse) -> Self {
        Self { status: response.status(), response: RefCell::new(Some(response)) }
    }
}

impl ResponseError for Unaccompanied {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    /// Whole the first time it is asked for: a body is sent once.
    fn error_response(&self) -> HttpResponse {
        self.response.take().unwrap_or_else(|| HttpResponse::new(self.status))
    }
}

impl fmt::Display for Unaccompanied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "answered with {}", self.status)
    }
}

impl fmt::Debug for Unaccompanied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unaccompanied").field(&self.status).finish()
    }
}
