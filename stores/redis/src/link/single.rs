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
    aio::MultiplexedConnection, cmd,
};
use tokio::time::timeout;

use super::{Call, Next, late};
use crate::error::is_refusal;

/// How many commands may wait to be written; more callers than that wait for room first.
const QUEUE: usize = 1_024;

type Opening = Shared<BoxFuture<'static, Result<MultiplexedConnection, RedisError>>>;

pub(crate) struct Single {
    client: Client,
    config: AsyncConnectionConfig,
    patience: Duration,
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
            // Both have time limits of their own: an opening, and a call.
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        let line = Mutex::new(Line { number: 0, opening: opening(&client, &config, patience) });
        Self { client, config, patience, line }
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
    pub(super) fn next(copy: u32, call: &Call, error: &RedisError) -> Next {
        let was_sent = call.line.is_some();
        let may_do_better = error.is_connection_dropped() || is_demoted(error);
        if copy == 1 && was_sent && may_do_better { Next::Again } else { Next::GiveUp }
    }

    /// Has the next call open a connection, if the one of this number is still that of the moment. Calls that wait for
    /// answers on it go on waiting.
    pub(super) fn leave(&self, number: u64) {
        let mut line = self.line();
        if line.number == number {
            let opening = opening(&self.client, &self.config, self.patience);
            *line = Line { number: number + 1, opening };
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects, and makes sure that somebody answers: of what is sent to a server that does not, nobody would know whether
/// it was done. Who waits for it learns that it failed before the patience ends.
fn opening(client: &Client, config: &AsyncConnectionConfig, patience: Duration) -> Opening {
    let (client, config) = (client.clone(), config.clone());
    let open = async move {
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        match connection.send_packed_command(&cmd("PING")).await.and_then(Value::extract_error) {
            Err(error) if !is_refusal(&error) => Err(error),
            Ok(_) | Err(_) => Ok(connection),
        }
    };
    async move { timeout(patience / 2, open).await.unwrap_or_else(|elapsed| Err(late(elapsed))) }
        .boxed()
        .shared()
}

fn is_demoted(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}

impl fmt::Debug for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").finish_non_exhaustive()
    }
}
