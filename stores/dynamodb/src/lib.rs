//! Idempotency records in Amazon DynamoDB: one conditional update a transition.
