//! The API on a file of its own, spoken to without a socket.

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode, header},
};
use axum_sqlite_orders::{
    app::{app, policy},
    customer::Customer,
    orders::{NewOrder, Orders},
};
use http_body_util::BodyExt;
use idempotency_axum::{IdempotencyLayer, Key};
use idempotency_store_sqlite::SqliteStore;
use serde_json::Value;
use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tower::ServiceExt;

pub(crate) struct Shop {
    app: Router,
    orders: Orders,
    files: TempDir,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let files = tempfile::tempdir().unwrap();
        let db = files.path().join("orders.db");
        let store = SqliteStore::open(&db).await.unwrap();
        let orders = Orders::open(&db).await.unwrap();
        let layer = IdempotencyLayer::with_policy(store, policy().build().unwrap());
        Self { app: app(orders.clone(), layer), orders, files }
    }

    pub(crate) async fn post(&self, key: Option<&str>, body: &str) -> Answer {
        let mut request = Request::post("/orders")
            .header(header::AUTHORIZATION, "Bearer alice")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        Answer::read(self.app.clone().oneshot(request).await.unwrap()).await
    }

    /// Writes an order of the key `k` past the layer, as a run does that dies before it is recorded.
    pub(crate) async fn place(&self, customer: &str, quantity: u32) {
        let new = NewOrder { item: "tea".to_owned(), quantity };
        let key = Key::new("k").unwrap();
        self.orders.place(&Customer(customer.to_owned()), &key, new).await.unwrap();
    }

    pub(crate) async fn orders_written(&self) -> i64 {
        let options = SqliteConnectOptions::new().filename(self.files.path().join("orders.db"));
        let mut connection = options.connect().await.unwrap();
        sqlx::query_scalar("SELECT count(*) FROM orders").fetch_one(&mut connection).await.unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) replayed: bool,
    pub(crate) text: String,
}

impl Answer {
    async fn read(response: Response<Body>) -> Self {
        let replayed = response.headers().contains_key("idempotency-replayed");
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Self { status, replayed, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}
