//! Serves the orders behind API Gateway or a function URL; `DATABASE_URL` says where the records are.

use idempotency_store_postgres::PostgresStore;
use lambda_axum::app;
use lambda_http::{Error, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = PostgresStore::connect(&std::env::var("DATABASE_URL")?).await?;
    run(app(store)?).await
}
