//! Three routes, three policies, one engine, and two documents that tell clients what to expect.
//!
//! | route | what a second run would cost | its policy |
//! |---|---|---|
//! | `POST /comments` | a comment twice | the default: keys are optional, a 5xx frees them, an expired key is new |
//! | `POST /payments` | money | a key is required and belongs to a customer; after a 5xx or a crash nothing runs again until somebody has looked; an expired key is refused for a while |
//! | `POST /exports` | time | copies wait for the first one's answer; a long answer is replayed without its body; requests may be large |
//!
//! [`policies`] has the three policies, [`app`] the routes. From the same policies come
//! `GET /.well-known/idempotency`, the contract, and what [`openapi`] adds to `GET /openapi.json`: neither can say
//! anything else than what the layers do. The tests read both and send the requests that they make promises about.
//!
//! ```console
//! $ cargo run -p axum-memory-policies
//! $ curl -s http://127.0.0.1:3000/.well-known/idempotency
//! $ curl -i http://127.0.0.1:3000/payments -H 'Authorization: Bearer alice' --json '{"amount":5}'
//! HTTP/1.1 400 Bad Request
//! ```

pub mod app;
pub mod openapi;
pub mod policies;
