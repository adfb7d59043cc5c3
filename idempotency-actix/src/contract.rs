//! The contract of a service, as a route.

use std::time::Duration;

use actix_web::{
    HttpResponse,
    dev::{AppService, HttpServiceFactory},
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    web,
};
use bytes::Bytes;
use idempotency_tower::Store;
use serde_json::Value;

use crate::Idempotency;

/// What each route of a service does with keys, published at [`WELL_KNOWN`](Self::WELL_KNOWN) for clients to read before
/// they send one. It is a service of its own:
///
/// ```
/// # use actix_web::{App, web};
/// # use idempotency_actix::{Contract, Idempotency, Policy, PolicyError};
/// # use idempotency_store_memory::MemoryStore;
/// # async fn order() -> &'static str { "" }
/// # async fn refund() -> &'static str { "" }
/// # fn build() -> Result<(), PolicyError> {
/// let orders = Idempotency::new(MemoryStore::new());
/// let refunds = orders.under(Policy::builder().required().build()?);
/// let contract = Contract::new().route("/orders", &orders).route("/refunds", &refunds);
///
/// let app = App::new()
///     .service(web::resource("/orders").wrap(orders).route(web::post().to(order)))
///     .service(web::resource("/refunds").wrap(refunds).route(web::post().to(refund)))
///     .service(contract);
/// # Ok(drop(app))
/// # }
/// ```
///
/// Its form is that of the other HTTP doors: [`idempotency_tower::Contract`].
#[derive(Debug, Clone)]
pub struct Contract {
    contract: idempotency_tower::Contract,
    max_age: Duration,
}

impl Contract {
    /// The path it is served at: `/.well-known/idempotency`.
    pub const WELL_KNOWN: &str = idempotency_tower::Contract::WELL_KNOWN;

    /// A contract of no routes, which caches may keep for an hour.
    pub fn new() -> Self {
        Self { contract: idempotency_tower::Contract::new(), max_age: Duration::from_secs(60 * 60) }
    }

    /// Adds what `idempotency` does on `path`, written as the caller sends it: with the prefixes of its scopes. One in the
    /// shadow adds nothing.
    #[must_use]
    pub fn route<S: Store>(mut self, path: &str, idempotency: &Idempotency<S>) -> Self {
        self.contract = self.contract.route(path, idempotency.policy());
        self
    }

    /// How long caches may keep it, in whole seconds: no longer than you plan changes of a policy ahead. 1 h.
    #[must_use]
    pub const fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// The document.
    pub fn document(&self) -> Value {
        self.contract.document()
    }
}

impl Default for Contract {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpServiceFactory for Contract {
    fn register(self, config: &mut AppService) {
        let document = Bytes::from(self.document().to_string());
        let max_age = format!("public, max-age={}", self.max_age.as_secs());
        let answer = move || {
            let mut answer = HttpResponse::Ok();
            answer.insert_header((CONTENT_TYPE, "application/json"));
            answer.insert_header((CACHE_CONTROL, max_age.as_str()));
            let answer = answer.body(document.clone());
            async move { answer }
        };
        web::resource(Self::WELL_KNOWN).route(web::get().to(answer)).register(config);
    }
}
