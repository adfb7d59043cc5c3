//! Opening a store: what may be chosen.

use std::{fmt, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{Client, config::timeout::TimeoutConfig};
use idempotency_core::clock::{Clock, SteadyClock};

use crate::{
    DynamoDbStore, OpenError,
    clock::ServiceClock,
    schema::{self, WhenAbsent},
    table::Table,
};

/// Below the 2 s an engine gives a store call.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longer than anybody waits, and within what the runtime's timers can hold.
const MOST_PATIENCE: Duration = Duration::from_secs(3_600);

/// No reading of the service's clock is more than a second off: two of them are not more than this apart.
const MARGIN: Duration = Duration::from_secs(2);

/// What may be chosen before a [`DynamoDbStore`] is opened.
#[must_use]
pub struct DynamoDbStoreBuilder {
    client: Client,
    table: Arc<str>,
    patience: Duration,
    margin: Duration,
    given: Option<Arc<dyn Clock>>,
    host: Arc<dyn Clock>,
    when_absent: WhenAbsent,
}

impl DynamoDbStoreBuilder {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            table: DynamoDbStore::TABLE.into(),
            patience: PATIENCE,
            margin: MARGIN,
            given: None,
            host: Arc::new(SteadyClock::new()),
            when_absent: WhenAbsent::Refuse,
        }
    }

    /// The name of the table, or its ARN: `idempotency` unless set.
    pub fn table(mut self, table: impl Into<Arc<str>>) -> Self {
        self.table = table.into();
        self
    }

    /// How long a call may take, what the SDK sends again included: 1.5 s unless set, at most an hour. Keep it below the
    /// engine's store timeout (2 s). An attempt that hangs is given up after half of it.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(MOST_PATIENCE);
        self
    }

    /// How much later than its lease a run is taken for lapsed: 2 s unless set, for that is how far the readings that two
    /// hosts make of the service's clock may be apart. With less, a run may be taken over while its lease lasts. Hosts
    /// that share a table should agree: a lease keeps the margin of the host that wrote it.
    pub fn takeover_margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Reads the time from `clock` instead of the service's answers. For tests: hosts that share a table must share a
    /// clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.given = Some(Arc::new(clock));
        self
    }

    /// The clock of this host that the answers of the service correct.
    #[cfg(test)]
    pub(crate) fn host_clock(mut self, clock: impl Clock) -> Self {
        self.host = Arc::new(clock);
        self
    }

    /// Creates the table where it is absent, paid per request, and has it expire items by `expires_at`; waits until it
    /// can be used, for a minute at most. Safe from many processes at once. Needs more permissions than a service should
    /// have: for tests, and for tools that set things up.
    pub fn ensure_table(mut self) -> Self {
        self.when_absent = WhenAbsent::Create;
        self
    }

    /// Opens the store: looks at the table, and learns the service's time from the answer.
    ///
    /// # Errors
    /// [`OpenError`] when there is no table of this name, it is not one for this store, or DynamoDB does not answer.
    pub async fn open(self) -> Result<DynamoDbStore, OpenError> {
        let when_absent = self.when_absent;
        let store = self.unchecked();
        schema::prepare(&store.table, when_absent).await?;
        Ok(store)
    }

    pub(crate) fn unchecked(self) -> DynamoDbStore {
        let table = Table {
            client: bounded(&self.client, self.patience / 2),
            name: self.table,
            patience: self.patience,
            given: self.given,
            clock: Arc::new(ServiceClock::new(self.host)),
        };
        DynamoDbStore::from_parts(table, self.margin)
    }
}

/// The same client, with attempts that take no longer than this.
fn bounded(client: &Client, attempt: Duration) -> Client {
    let config = client.config();
    let set = config.timeout_config().cloned().unwrap_or_else(TimeoutConfig::disabled);
    let attempt = set.operation_attempt_timeout().map_or(attempt, |set| set.min(attempt));
    let timeouts = set.to_builder().operation_attempt_timeout(attempt).build();
    Client::from_conf(config.to_builder().timeout_config(timeouts).build())
}

impl fmt::Debug for DynamoDbStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbStoreBuilder")
            .field("table", &self.table)
            .field("patience", &self.patience)
            .field("margin", &self.margin)
            .field("when_absent", &self.when_absent)
            .finish_non_exhaustive()
    }
}
