//! Time: the guard behind actix and tonic, each beside its bare service, in one run.

use idempotency_benches::{frameworks, latency::Effort};

#[actix_web::main]
async fn main() {
    frameworks::compare(Effort::QUICK).await;
}
