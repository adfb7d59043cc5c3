//! axum-idempotent before the pages, keyed by the header, with the memory store of its examples.

use std::{io, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderValue, header},
    middleware::{Next, from_fn},
    response::Response,
};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use conformance_peer_pages::{inside, serve};
use ruts::{CookieOptions, SessionLayer, store::moka::MokaStore};
use tower_cookies::CookieManagerLayer;

/// The cookie of one visit, which every request brings.
const VISIT: &str = "visit=AAAAAAAAAAAAAAAAAAAAAA";

#[tokio::main]
async fn main() -> io::Result<()> {
    let options = IdempotentOptions::default().use_idempotency_key_header(None, true).expire_after(2);
    let cookie = CookieOptions::build().name("visit").path("/");
    let guarded = inside()
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(Arc::new(MokaStore::builder().build())).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
        .layer(from_fn(as_one_visitor));
    serve(
        guarded,
        &[
            "use_idempotency_key_header(None, true) (default: a hash of the whole request, no key required), since the \
             contract is about keys",
            "expire_after(2) (default 300 s), so that expiry can be seen",
            "every request is given the cookie of one visit: the layer remembers nothing for a client without one, and \
             the suite keeps no cookies",
        ],
    )
    .await
}

async fn as_one_visitor(mut request: Request, next: Next) -> Response {
    request.headers_mut().insert(header::COOKIE, HeaderValue::from_static(VISIT));
    next.run(request).await
}
