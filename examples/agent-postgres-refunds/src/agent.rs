//! The loop: a model calls tools until it has something to say.

use idempotency_agent::{Ledger, LedgerError, tools::Toolbox};
use idempotency_core::LedgerStore;

use crate::model::{Model, Turn};

/// How often a model may take a turn on one message.
const TURNS: u32 = 20;

/// How a message was dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// The model had its say.
    Said(String),
    /// Somebody else deals with it, or has.
    NotOurs,
    /// The model would not come to an end.
    GaveUp,
}

/// Deals with one job of a queue: `job` is its id, the same when it is delivered again.
///
/// # Errors
/// [`LedgerError`] when the ledger fails. The run is then not ended, so that the job's redelivery takes it up.
pub async fn handle<S: LedgerStore>(
    ledger: &Ledger<S>,
    tools: &Toolbox,
    conversation: &str,
    job: &str,
    model: &mut impl Model,
) -> Result<Handled, LedgerError> {
    let run = ledger.run(conversation).id(job).begin().await?;
    if !run.can_write() {
        return Ok(Handled::NotOurs);
    }
    let mut answers = Vec::new();
    for _ in 0..TURNS {
        match model.next(&answers) {
            Turn::Say(words) => {
                run.end("completed").await?;
                return Ok(Handled::Said(words));
            }
            Turn::Call { id, tool, arguments } => {
                let outcome = tools.dispatch(&run, &tool, arguments).await?;
                answers.push(outcome.anthropic(&id));
                if outcome.terminal {
                    return Ok(Handled::NotOurs);
                }
            }
        }
    }
    Ok(Handled::GaveUp)
}
