//! The one tool that moves money.

use std::error::Error;

use idempotency_agent::{
    Applied, EffectError, InDoubt, Reconciled,
    json::Raw,
    tools::{GuardedTool, ToolSpec, Toolbox},
};
use serde_json::json;

use crate::provider::{Provider, ProviderError};

/// The tools of the agent: it may refund, and ask whether it has.
pub fn tools(provider: &Provider) -> Toolbox {
    let provider = provider.clone();
    let parameters = json!({
        "type": "object",
        "properties": {
            "order": {"type": "string", "description": "the order's number"},
            "cents": {"type": "integer", "description": "how much, in cents"},
            "reason": {"type": "string", "description": "why, in your own words"},
        },
        "required": ["order", "cents"],
    });
    let refund = GuardedTool::new(
        ToolSpec::new("refund", "Pays money back to the customer of an order.", parameters),
        // The order says which refund is meant. How a model words its reason does not, and neither does the amount: two
        // amounts for one order are a mistake that is not paid twice.
        |arguments| Some(json!({"order": arguments["order"].as_str()?})),
        move |arguments, fx| {
            let provider = provider.clone();
            async move {
                let order = arguments["order"].as_str().unwrap_or_default();
                let Some(cents) = arguments["cents"].as_u64() else {
                    return Err(EffectError::not_applied("the amount is no number of cents"));
                };
                let number = provider.refund(order, cents, fx.idempotency_key().as_str()).await?;
                Ok(json!({"refund": number, "cents": cents}))
            }
        },
    );
    let summary = |arguments: &serde_json::Value| {
        format!("refund of {} cents for order {}", arguments["cents"], arguments["order"])
    };
    Toolbox::new().tool(refund.summary(summary)).check_tool(Toolbox::CHECK)
}

/// What an error of the provider says about the money.
pub fn classify(error: &(dyn Error + 'static)) -> Applied {
    match error.downcast_ref::<ProviderError>() {
        Some(ProviderError::Refused) => Applied::No,
        Some(ProviderError::NoAnswer) | None => Applied::Unknown,
    }
}

/// Finds out whether a refund in doubt was paid.
pub fn reconciler(provider: &Provider) -> impl idempotency_agent::Reconciler + use<> {
    let provider = provider.clone();
    move |question: InDoubt| {
        let found = match provider.look_up(question.provider_key.as_str()) {
            Some(number) => Reconciled::Committed(Raw::of(&json!({"refund": number})).ok()),
            None => Reconciled::NotApplied,
        };
        async move { Ok::<_, Box<dyn Error + Send + Sync>>(found) }
    }
}
