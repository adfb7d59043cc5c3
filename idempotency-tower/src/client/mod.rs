//! The caller's side: one key for one request, through all of its tries.
//!
//! | layer | what it does |
//! |---|---|
//! | [`KeyLayer`] | gives every POST and PATCH a fresh random key, unless the caller set one |
//! | [`RetryLayer`] | tries keyed requests again while it is safe to, with the key they have |
//!
//! [`KeyLayer`] stands outside, so that it sees a request once and its tries share the key. It works around any
//! retrying layer that clones requests, tower's own included; [`RetryLayer`] is the one that tells the guard's refusals
//! from an application's answers:
//!
//! | what a try gives | then |
//! |---|---|
//! | 409 `conflict`: the first copy still runs | wait as `Retry-After` says, try again |
//! | 503 `store-unavailable` or `overloaded`: nothing was run | the same |
//! | an error: nobody knows whether it ran | back off, try again; its key makes that safe |
//! | anything else, an application's own 409 and 503 too | the answer |
//!
//! # With hyper's client
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::{BodyExt, Full};
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use idempotency_tower::client::{KeyLayer, RetryLayer};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), idempotency_tower::BoxError> {
//! let http = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
//! let mut client =
//!     ServiceBuilder::new().layer(KeyLayer::new()).layer(RetryLayer::default()).service(http);
//!
//! let order = Request::post("http://shop.example/orders").body(Full::from(r#"{"tea": 1}"#))?;
//! let response = client.ready().await?.call(order).await?;
//! let receipt = response.into_body().collect().await?.to_bytes();
//! # Ok(())
//! # }
//! ```
//!
//! # With reqwest
//!
//! `reqwest::Client` is a tower service of its own request type. Between it and these layers stand the two conversions
//! it comes with, `reqwest::Request::try_from(http::Request<impl Into<reqwest::Body>>)` and
//! `http::Response::<reqwest::Body>::from(reqwest::Response)`:
//!
//! ```text
//! ServiceBuilder::new()
//!     .layer(KeyLayer::new())
//!     .layer(RetryLayer::default())
//!     .map_response(http::Response::<reqwest::Body>::from)
//!     .filter(|request: http::Request<Full<Bytes>>| {
//!         reqwest::Request::try_from(request.map(reqwest::Body::wrap))
//!     })
//!     .service(reqwest::Client::new())
//! ```
//!
//! # One operation, several calls
//!
//! A retry that a program starts itself, after a crash of its own or at a user's second click, is a new request to the
//! layers. An [`OperationKey`] in its extensions says that it is not, and is refused on any other request:
//!
//! ```
//! # use bytes::Bytes;
//! # use http::{Request, Response};
//! # use http_body_util::Full;
//! # use idempotency_tower::BoxError;
//! use idempotency_tower::client::{KeyLayer, Misuse, OperationKey};
//! # use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let http = service_fn(async |request: Request<Full<Bytes>>| {
//! #     assert!(request.headers().contains_key("idempotency-key"));
//! #     Ok::<_, BoxError>(Response::new(Full::<Bytes>::default()))
//! # });
//! let client = ServiceBuilder::new().layer(KeyLayer::new()).service(http);
//! let order = |key: &OperationKey, body: &'static str| {
//!     Request::post("http://shop.example/orders").extension(key.clone()).body(Full::from(body))
//! };
//!
//! let key = OperationKey::random();
//! client.clone().oneshot(order(&key, "tea")?).await?;
//! client.clone().oneshot(order(&key, "tea")?).await?; // the same operation
//! let error = client.oneshot(order(&key, "coffee")?).await.unwrap_err(); // not sent
//! assert!(matches!(error.downcast_ref(), Some(Misuse::OtherRequest { .. })));
//! # Ok(())
//! # }
//! ```
//!
//! # What is logged
//!
//! Key headers are marked sensitive: their `Debug` shows no character, and HTTP/2 keeps them out of its compression
//! tables. A retry logs its reason and its wait.

mod key;
mod operation_key;
mod retry;
mod spelling;

pub use key::{KeyFuture, KeyLayer, KeyService};
pub use operation_key::{Misuse, OperationKey};
pub use retry::{Decision, PeekedBody, RetryFuture, RetryLayer, RetryService, RetryTerms};
pub use spelling::Spelling;
