//! What the example promises, in memory and on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use agent_postgres_refunds::{
    agent::{Handled, handle},
    model::{Model, Script, Turn},
    provider::{Mood, Provider},
    refunds,
};
use idempotency_agent::Ledger;
use idempotency_core::LedgerStore;
use idempotency_services::Server;
use idempotency_store_memory::MemoryLedger;
use idempotency_store_postgres::PostgresLedger;
use serde_json::{Value, json};

fn call(id: &str, cents: u64, reason: &str) -> Turn {
    let arguments = json!({"order": "A-1001", "cents": cents, "reason": reason});
    Turn::Call { id: id.to_owned(), tool: "refund".to_owned(), arguments }
}

fn say() -> Turn {
    Turn::Say("done".to_owned())
}

fn on<S: LedgerStore>(store: S, provider: &Provider) -> Ledger<S> {
    let builder = Ledger::builder(store).classifier(refunds::classify);
    builder.reconciler(refunds::reconciler(provider)).build().unwrap()
}

/// A model that repeats itself, a job that comes again, a customer who writes again: one refund.
async fn story<S: LedgerStore>(store: S, conversation: &str) {
    let provider = Provider::default();
    let (ledger, tools) = (on(store, &provider), refunds::tools(&provider));
    provider.will(&[Mood::AnswerLost]);
    let mut model = Script::new(vec![call("1", 1_250, "broken"), call("2", 1_250, "it is broken"), say()]);
    let first = handle(&ledger, &tools, conversation, "job 1", &mut model).await.unwrap();
    assert_eq!(first, Handled::Said("done".to_owned()));
    assert_eq!(provider.paid().len(), 1);
    let mut model = Script::new(vec![call("3", 1_250, ""), say()]);
    let again = handle(&ledger, &tools, conversation, "job 1", &mut model);
    assert_eq!(again.await.unwrap(), Handled::NotOurs);
    let mut model = Script::new(vec![call("4", 9_999, "once more"), say()]);
    handle(&ledger, &tools, conversation, "job 2", &mut model).await.unwrap();
    assert_eq!(provider.paid().len(), 1);
    assert_eq!(provider.paid()[0].cents, 1_250);
}

#[tokio::test]
async fn in_memory() {
    story(MemoryLedger::new(), "conversation").await;
}

#[tokio::test]
async fn in_postgres() {
    let Some(url) = Server::Postgres.url() else { return };
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let store = PostgresLedger::builder().open(pool).await.unwrap();
    story(store, &format!("example {}", std::process::id())).await;
}

#[tokio::test]
async fn what_the_provider_refuses_may_be_tried_again() {
    let provider = Provider::default();
    let (ledger, tools) = (on(MemoryLedger::new(), &provider), refunds::tools(&provider));
    provider.will(&[Mood::Refuses]);
    let mut model = Script::new(vec![call("1", 1_250, ""), call("2", 1_250, ""), say()]);
    handle(&ledger, &tools, "conversation", "job 1", &mut model).await.unwrap();
    assert_eq!(provider.paid().len(), 1);
}

/// While the model thinks, the next message arrives.
struct Overtaken<'l, S> {
    ledger: &'l Ledger<S>,
    answers: Vec<Value>,
}

impl<S: LedgerStore> Model for Overtaken<'_, S> {
    fn next(&mut self, answers: &[Value]) -> Turn {
        self.answers = answers.to_vec();
        let newer = self.ledger.run("conversation").id("job 2").begin();
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(newer)).unwrap();
        call("1", 1_250, "blind")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_overtaken_refunds_nothing() {
    let provider = Provider::default();
    let (ledger, tools) = (on(MemoryLedger::new(), &provider), refunds::tools(&provider));
    let mut model = Overtaken { ledger: &ledger, answers: Vec::new() };
    let handled = handle(&ledger, &tools, "conversation", "job 1", &mut model).await.unwrap();
    assert_eq!((handled, provider.paid().len()), (Handled::NotOurs, 0));
}
