//! axum-idempotent before the pages, keyed by the header, with the memory store of its examples.

use std::{io, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderValue, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::Response,
};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use conformance_peer_pages::{CALLER, Site, count_beside, inside, serve};
use ruts::{CookieOptions, SessionLayer, store::moka::MokaStore};
use tower_cookies::CookieManagerLayer;

/// The name of the cookie that tells one visit from another.
const VISIT: &str = "visit";

/// How many bytes name a visit.
const VISIT_BYTES: usize = 16;

#[tokio::main]
async fn main() -> io::Result<()> {
    let site = Arc::<Site>::default();
    let options = IdempotentOptions::default().use_idempotency_key_header(None, true).expire_after(2);
    let cookie = CookieOptions::build().name(VISIT).path("/");
    let guarded = inside()
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(Arc::new(MokaStore::builder().build())).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
        .layer(from_fn(as_a_visitor))
        .layer(from_fn_with_state(Arc::clone(&site), count_beside));
    serve(
        site,
        guarded,
        &[
            "use_idempotency_key_header(None, true) (default: a hash of the whole request, no key required), since the \
             contract is about keys",
            "expire_after(2) (default 300 s), so that expiry can be seen",
            "every request is given the cookie of its caller's visit: the layer remembers nothing for a client without \
             one, and the suite keeps no cookies",
            "GET /counter without a key stands beside the layer, which would want one; with a key it stands behind it",
        ],
    )
    .await
}

/// A visit for each caller, and one for all who do not say who they are.
async fn as_a_visitor(mut request: Request, next: Next) -> Response {
    let caller = request.headers().get(CALLER).map_or(&b""[..], HeaderValue::as_bytes);
    let mut visit = [0; VISIT_BYTES];
    for (byte, letter) in visit.iter_mut().zip(caller) {
        *byte = *letter;
    }
    let cookie = format!("{VISIT}={}", BASE64_URL_SAFE_NO_PAD.encode(visit));
    let cookie = HeaderValue::try_from(cookie).expect("letters and digits are a header value");
    request.headers_mut().append(header::COOKIE, cookie);
    next.run(request).await
}
