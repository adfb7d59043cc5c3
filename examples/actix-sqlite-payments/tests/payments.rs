//! What the example promises.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use actix_sqlite_payments::{
    app::{guard, routes},
    payments::Payments,
};
use actix_web::{
    App, Error,
    body::{MessageBody, to_bytes},
    dev::{Service, ServiceResponse},
    test::{TestRequest, init_service},
};
use idempotency_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Till {
    payments: Payments,
    store: SqliteStore,
    _dir: TempDir,
}

impl Till {
    async fn open() -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("payments.db");
        let (payments, store) =
            (Payments::open(&file).await.unwrap(), SqliteStore::open(&file).await.unwrap());
        Self { payments, store, _dir: dir }
    }

    async fn app(
        &self,
    ) -> impl Service<actix_http::Request, Response = ServiceResponse<impl MessageBody>, Error = Error> {
        let guard = guard(self.store.clone()).unwrap();
        init_service(App::new().configure(routes(self.payments.clone(), guard))).await
    }

    async fn paid(&self) -> i64 {
        self.payments.count().await.unwrap()
    }
}

fn payment(customer: &str, key: &str, body: &Value) -> TestRequest {
    let payment = TestRequest::post().uri("/payments").set_json(body);
    let payment = payment.insert_header(("authorization", format!("Bearer {customer}-secret")));
    if key.is_empty() { payment } else { payment.insert_header(("idempotency-key", key)) }
}

async fn send<A, B>(app: &A, request: TestRequest) -> (u16, bool, Value)
where
    A: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    match app.call(request.to_request()).await {
        Ok(response) => {
            let (_, response) = response.into_parts();
            let replayed = response.headers().contains_key("idempotency-replayed");
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body()).await.map_err(Into::into).unwrap();
            (status, replayed, serde_json::from_slice(&body).unwrap_or_default())
        }
        Err(error) => (error.as_response_error().status_code().as_u16(), false, Value::Null),
    }
}

#[actix_web::test]
async fn a_payment_and_its_retry_are_one_payment() {
    let till = Till::open().await;
    let app = till.app().await;
    let pay = || payment("ada", "k", &json!({ "cents": 450 }));
    assert_eq!(send(&app, pay()).await, (201, false, json!({ "id": 1, "cents": 450 })));
    assert_eq!(send(&app, pay()).await, (201, true, json!({ "id": 1, "cents": 450 })));
    let (status, _, problem) = send(&app, payment("ada", "k", &json!({ "cents": 950 }))).await;
    assert_eq!((status, &problem["code"]), (422, &json!("fingerprint-mismatch")));
    assert_eq!(till.paid().await, 1);
}

#[actix_web::test]
async fn keys_belong_to_their_customer() {
    let till = Till::open().await;
    let app = till.app().await;
    let body = json!({ "cents": 450 });
    assert_eq!(send(&app, payment("ada", "k", &body)).await.0, 201);
    assert_eq!(send(&app, payment("bob", "k", &body)).await, (201, false, json!({ "id": 2, "cents": 450 })));
    assert_eq!(send(&app, payment("", "k", &body)).await.0, 401);
    let (status, _, problem) = send(&app, payment("ada", "", &body)).await;
    assert_eq!((status, &problem["code"]), (400, &json!("missing-key")));
    assert_eq!(till.paid().await, 2);
}

#[actix_web::test]
async fn bad_json_frees_the_key_and_a_declined_payment_keeps_it() {
    let till = Till::open().await;
    let app = till.app().await;
    assert_eq!(send(&app, payment("ada", "k", &json!({ "pounds": 4 }))).await.0, 400);
    assert_eq!(send(&app, payment("ada", "k", &json!({ "cents": 450 }))).await.0, 201);
    let declined = || payment("ada", "l", &json!({ "cents": 0 }));
    assert_eq!(send(&app, declined()).await.0, 422);
    assert!(send(&app, declined()).await.1, "the refusal to pay is the answer");
    assert_eq!(till.paid().await, 1);
}

#[actix_web::test]
async fn a_failure_is_held_until_somebody_finds_out() {
    let till = Till::open().await;
    let app = till.app().await;
    till.payments.close().await;
    let pay = || payment("ada", "k", &json!({ "cents": 450 }));
    assert_eq!(send(&app, pay()).await.0, 500);
    let (status, _, problem) = send(&app, pay()).await;
    assert_eq!((status, &problem["code"]), (409, &json!("outcome-unknown")));
}
