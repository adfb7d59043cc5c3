//! The API: one resource, and the line that makes its retries safe.

use std::{rc::Rc, time::Duration};

use actix_web::{
    HttpResponse, ResponseError,
    http::StatusCode,
    middleware::from_fn,
    web::{self, Data, Json, ServiceConfig},
};
use idempotency_actix::{
    Attempt, Early, Idempotency, OnLapse, OnServerError, Policy, PolicyError, Scope, Store,
};

use crate::{
    customer::{Customer, authenticate},
    payments::{NewPayment, PayError, Payments},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the guard does: every payment needs a key, keys belong to a customer, and what failed or lapsed does not run again
/// without somebody's word.
///
/// # Errors
/// None with these values.
pub fn policy() -> Result<Policy, PolicyError> {
    Policy::builder()
        .required()
        .scope(|parts| parts.extensions.get::<Customer>().map(|customer| Scope::principal(&*customer.0)))
        .on_server_error(OnServerError::Hold)
        .on_lapse(OnLapse::Hold)
        .retention(7 * DAY)
        .reject_expired_keys_for(30 * DAY)
        .build()
}

/// The guard: to be made once, outside the closure that every worker runs.
///
/// # Errors
/// As [`policy`].
pub fn guard<S: Store>(store: S) -> Result<Idempotency<S>, PolicyError> {
    Ok(Idempotency::with_policy(store, policy()?).showing::<Customer>())
}

/// The routes. Who is authenticated last is asked first.
pub fn routes<S: Store>(payments: Payments, guard: Idempotency<S>) -> impl FnOnce(&mut ServiceConfig) {
    move |app| {
        let resource =
            web::resource("/payments").wrap(guard).wrap(from_fn(authenticate)).route(web::post().to(pay));
        app.app_data(Data::new(payments)).service(resource);
    }
}

/// Pays. `Early` frees the key when the JSON is bad, so that the client may mend it and try again.
async fn pay(
    payments: Data<Payments>,
    customer: web::ReqData<Customer>,
    attempt: Attempt,
    Early(payment): Early<Json<NewPayment>>,
) -> Result<HttpResponse, PayError> {
    // Handlers stay on their worker, so what they hold need not be `Send`.
    let customer: Rc<str> = Rc::from(&*customer.0);
    let paid = payments.pay(&customer, &attempt.provider_key(), payment.into_inner()).await?;
    Ok(HttpResponse::Created().json(paid))
}

impl ResponseError for PayError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Declined => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Database(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
