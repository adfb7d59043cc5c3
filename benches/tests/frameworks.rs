//! What is measured behind other frameworks answers as it should: the harness asserts every answer.

use idempotency_benches::{frameworks, latency::Effort};

#[actix_web::test]
async fn both_frameworks_answer_on_every_route() {
    frameworks::compare(Effort { rounds: 1, batches: 1, requests: 2 }).await;
}
