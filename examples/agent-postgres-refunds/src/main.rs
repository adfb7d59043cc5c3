//! Answers one customer who is delivered to the agent three times, on the database of `DATABASE_URL`.

use agent_postgres_refunds::{
    agent::handle,
    model::{Script, Turn},
    provider::{Mood, Provider},
    refunds,
};
use idempotency_agent::Ledger;
use idempotency_store_postgres::PostgresLedger;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = sqlx::PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    let provider = Provider::default();
    let builder = Ledger::builder(PostgresLedger::builder().open(pool).await?);
    let ledger = builder.classifier(refunds::classify).reconciler(refunds::reconciler(&provider)).build()?;
    let tools = refunds::tools(&provider);
    let conversation = format!("conversation {}", std::process::id());

    provider.will(&[Mood::AnswerLost]);
    for delivery in 1..=3 {
        let refund = Turn::Call {
            id: format!("call {delivery}"),
            tool: "refund".to_owned(),
            arguments: json!({"order": "A-1001", "cents": 1250, "reason": format!("wording {delivery}")}),
        };
        let mut model = Script::new(vec![refund, Turn::Say("Your money is on its way.".to_owned())]);
        let handled = handle(&ledger, &tools, &conversation, &format!("job {delivery}"), &mut model).await?;
        println!("delivery {delivery}: {handled:?}, {} refund(s) paid", provider.paid().len());
    }
    Ok(())
}
