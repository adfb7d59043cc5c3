//! The middleware, as apps, scopes and resources wrap themselves in it.

use std::{
    future::{Ready, ready},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_web::{
    Error,
    body::{EitherBody, MessageBody},
    dev::{Extensions, Service, ServiceRequest, ServiceResponse, Transform},
};
use idempotency_tower::{Drained, IdempotencyLayer, Notify, Observer, Policy, Store};

use crate::{GuardedBody, IdempotencyMiddleware};

/// Makes an app answer the second copy of a keyed request with the first one's result.
///
/// Build it once, outside the closure that actix runs in each worker, and clone it into every app: clones share one
/// engine and one store. Put it on with [`App::wrap`](actix_web::App::wrap), or on one
/// [`Scope`](actix_web::Scope::wrap) or [`Resource`](actix_web::Resource::wrap).
#[derive(Debug)]
pub struct Idempotency<S: Store> {
    layer: IdempotencyLayer<S>,
    shown: Arc<[Show]>,
}

/// Copies one type from a request's extensions to where a policy can see it.
pub(crate) type Show = fn(&Extensions, &mut http::Extensions);

impl<S: Store> Idempotency<S> {
    /// A middleware on `store` with the default [`Policy`].
    pub fn new(store: S) -> Self {
        Self::from_layer(IdempotencyLayer::new(store))
    }

    /// A middleware on `store` that does what `policy` says.
    pub fn with_policy(store: S, policy: Policy) -> Self {
        Self::from_layer(IdempotencyLayer::with_policy(store, policy))
    }

    /// The same, telling `observer` what happens to every operation.
    pub fn observed(store: S, policy: Policy, observer: impl Observer) -> Self {
        Self::from_layer(IdempotencyLayer::observed(store, policy, observer))
    }

    fn from_layer(layer: IdempotencyLayer<S>) -> Self {
        Self { layer, shown: Arc::new([copy::<idempotency_tower::Attempt>]) }
    }

    /// A middleware on the same engine under another policy, for a scope or a resource of its own:
    ///
    /// ```
    /// # use actix_web::{App, web};
    /// # use idempotency_actix::{Idempotency, OnLapse, OnServerError, Policy, PolicyError};
    /// # use idempotency_store_memory::MemoryStore;
    /// # async fn refund() -> &'static str { "" }
    /// # async fn comment() -> &'static str { "" }
    /// # fn build() -> Result<(), PolicyError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let money = Policy::builder().required().on_server_error(OnServerError::Hold).on_lapse(OnLapse::Hold).build()?;
    /// let for_money = idempotency.under(money);
    ///
    /// let app = App::new()
    ///     .service(web::resource("/refunds").wrap(for_money).route(web::post().to(refund)))
    ///     .service(web::scope("/posts").wrap(idempotency).route("/comments", web::post().to(comment)));
    /// # Ok(drop(app))
    /// # }
    /// ```
    ///
    /// The bounds are the engine's: what `policy` says of `store_timeout`, `max_live_runs` and `max_waiters` does not
    /// count here. Where two of them around one route would claim one record (the same key and scope on the same store),
    /// the outer one guards the request and its policy holds. Else each guards it for itself.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        Self { layer: self.layer.under(policy), shown: Arc::clone(&self.shown) }
    }

    /// Lets the policy's own functions see the request's extension `T`: what a middleware outside this one verified, for
    /// a [`scope`](crate::PolicyBuilder::scope). They see the head of the request, and of its extensions these only.
    #[must_use]
    pub fn showing<T: Clone + Send + Sync + 'static>(self) -> Self {
        let shown = self.shown.iter().copied().chain([copy::<T> as Show]).collect();
        Self { shown, ..self }
    }

    /// What it does.
    pub fn policy(&self) -> &Policy {
        self.layer.policy()
    }

    /// The same, its waiters woken by `notify` too: the store itself, where it can tell. Those made by
    /// [`under`](Self::under) afterwards are woken as well.
    #[must_use]
    pub fn woken_by(self, notify: impl Notify) -> Self {
        Self { layer: self.layer.woken_by(notify), ..self }
    }

    /// How many copies wait for the answer of a running request.
    pub fn waiters(&self) -> usize {
        self.layer.waiters()
    }

    /// Waits for live runs and pending completions, at most `limit`: **before** the server stops, since a worker that
    /// ends takes its runs with it. What is left then lapses.
    pub async fn drain(&self, limit: Duration) -> Drained {
        self.layer.drain(limit).await
    }

    /// How many runs are live, those whose caller has left and pending completions included.
    pub fn live_runs(&self) -> usize {
        self.layer.live_runs()
    }
}

impl<S: Store> Clone for Idempotency<S> {
    fn clone(&self) -> Self {
        Self { layer: self.layer.clone(), shown: Arc::clone(&self.shown) }
    }
}

impl<I, B, S> Transform<I, ServiceRequest> for Idempotency<S>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
    S: Store,
{
    type Response = ServiceResponse<EitherBody<B, GuardedBody>>;
    type Error = Error;
    type Transform = IdempotencyMiddleware<I, S>;
    type InitError = ();
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: I) -> Self::Future {
        ready(Ok(IdempotencyMiddleware::new(Rc::new(inner), self.layer.clone(), Arc::clone(&self.shown))))
    }
}

fn copy<T: Clone + Send + Sync + 'static>(from: &Extensions, to: &mut http::Extensions) {
    if let Some(extension) = from.get::<T>() {
        to.insert(extension.clone());
    }
}
