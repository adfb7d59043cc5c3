//! One server: a connection that all calls share, and a new one in its place when it dies.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, ServerErrorKind, Value,
    aio::MultiplexedConnection,
};

use super::{Call, Next};
use crate::error::is_refusal;

/// How many commands may wait to be written; more callers than that wait for room first.
const QUEUE: usize = 1_024;

type Opening = Shared<BoxFuture<'static, Result<MultiplexedConnection, RedisError>>>;

pub(crate) struct Single {
    client: Client,
    config: AsyncConnectionConfig,
    line: Mutex<Line>,
}

/// The connection of the moment, or its opening, for which everybody waits together.
struct Line {
    number: u64,
    opening: Opening,
}

impl Single {
    /// Opens a connection when it is first used.
    pub(crate) fn new(client: Client, patience: Duration) -> Self {
        let config = AsyncConnectionConfig::new()
            // Who waits for a connection learns that it failed before the patience ends.
            .set_connection_timeout(Some(patience / 2))
            // A call has a time limit of its own.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        let line = Mutex::new(Line { number: 0, opening: opening(&client, &config) });
        Self { client, config, line }
    }

    pub(super) async fn send(&self, command: &Cmd, call: &mut Call) -> Result<Value, RedisError> {
        let (number, opening) = {
            let line = self.line();
            (line.number, line.opening.clone())
        };
        let mut connection = opening.await.inspect_err(|_| self.leave(number))?;
        call.line = Some(number);
        let answer = call.await_answer(connection.send_packed_command(command)).await;
        if answer.as_ref().is_err_and(|error| !is_refusal(error) || is_demoted(error)) {
            self.leave(number);
        }
        answer
    }

    /// Once more on a new connection: the old one may have died long ago, while nobody used it, or its server may have
    /// lost its place to another.
    pub(super) fn next(copy: u32, error: &RedisError) -> Next {
        if copy == 1 && (error.is_connection_dropped() || is_demoted(error)) {
            Next::Again
        } else {
            Next::GiveUp
        }
    }

    /// Has the next call open a connection, if the one of this number is still that of the moment. Calls that wait for
    /// answers on it go on waiting.
    pub(super) fn leave(&self, number: u64) {
        let mut line = self.line();
        if line.number == number {
            *line = Line { number: number + 1, opening: opening(&self.client, &self.config) };
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn opening(client: &Client, config: &AsyncConnectionConfig) -> Opening {
    let (client, config) = (client.clone(), config.clone());
    async move { client.get_multiplexed_async_connection_with_config(&config).await }.boxed().shared()
}

fn is_demoted(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

impl fmt::Debug for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").finish_non_exhaustive()
    }
}
