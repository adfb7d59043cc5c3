//! A cluster: the driver knows its nodes, and finds them again. It sends nothing twice by itself, since only who counts
//! the copies knows what became of a call.

use std::{collections::BTreeSet, fmt, time::Duration};

use futures_util::TryFutureExt;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline, RedisError,
    ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, NodeAddress},
    cluster_async::ClusterConnection,
    cluster_routing::{RoutingInfo, SingleNodeRoutingInfo},
    cmd, from_redis_value,
    io::tcp::TcpSettings,
};

use super::{Call, Next, Place};

/// How often a call is sent: nodes learn from one another, bit by bit, who is in charge.
const MOST_COPIES: u32 = 6;

/// How long the driver gets to find a node again; the second time twice that, and so on.
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Cluster {
    connection: ClusterConnection,
    /// How one connects to a node, but for its address.
    seed: ConnectionInfo,
    patience: Duration,
}

impl Cluster {
    pub(crate) async fn connect(seeds: Vec<ConnectionInfo>, patience: Duration) -> Result<Self, RedisError> {
        let seed = seeds.first().cloned();
        let client = ClusterClient::builder(seeds)
            .retries(0)
            .connection_timeout(patience / 2)
            .response_timeout(patience)
            .overall_response_timeout(None)
            .tcp_settings(TcpSettings::default().set_nodelay(true))
            .build()?;
        let connection = client.get_async_connection().await?;
        let seed = seed.ok_or((ErrorKind::InvalidClientConfig, "a cluster is found through a node"))?;
        Ok(Self { connection, seed, patience })
    }

    pub(super) async fn send(
        &self,
        command: &Cmd,
        place: &Place,
        call: &mut Call,
    ) -> Result<Value, RedisError> {
        let mut connection = self.connection.clone();
        match place {
            Place::OfTheKey => call.await_answer(connection.req_packed_command(command)).await,
            Place::Node(node) => call.await_answer(node.clone().send_packed_command(command)).await,
            Place::NextNode(node) => {
                let mut connection = self.connect_to(node.host(), node.port()).await?;
                let mut asked = Pipeline::with_capacity(2);
                asked.cmd("ASKING").add_command(command.clone());
                let answers = connection.req_packed_commands(&asked, 1, 1);
                call.await_answer(answers.map_ok(|mut answers| answers.pop().unwrap_or_default())).await
            }
        }
    }

    /// A connection to a node beside the driver, which may not know it yet. A node without a name is where the seed is.
    async fn connect_to(&self, host: &str, port: u16) -> Result<MultiplexedConnection, RedisError> {
        let host = match (host, self.seed.addr()) {
            ("", ConnectionAddr::Tcp(seed, _) | ConnectionAddr::TcpTls { host: seed, .. }) => seed.clone(),
            (host, _) => host.to_owned(),
        };
        let address = match self.seed.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                let (insecure, tls_params) = (*insecure, tls_params.clone());
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.patience / 2))
            .set_response_timeout(None);
        let client = Client::open(self.seed.clone().set_addr(address))?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// The nodes that hold slots, each on a connection of its own: the driver knows only those that it was sent to.
    pub(super) async fn nodes(&self) -> Result<Vec<Place>, RedisError> {
        let anywhere = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
        let mut ask = cmd("CLUSTER");
        ask.arg("SLOTS");
        let slots = self.connection.clone().route_command(ask, anywhere).await?.extract_error()?;
        let mut places = Vec::new();
        for (host, port) in primaries(slots)? {
            places.push(Place::Node(self.connect_to(&host, port).await?));
        }
        Ok(places)
    }

    /// Once more where a node said that another is in charge, or where the driver has lost a node and looks for it.
    pub(super) fn next(copy: u32, error: &RedisError) -> Next {
        if copy >= MOST_COPIES {
            return Next::GiveUp;
        }
        let is_lost = error.is_connection_dropped() || error.kind() == ErrorKind::ClusterConnectionNotFound;
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Ask) => next_node(error).map_or(Next::GiveUp, Next::AgainAt),
            // The driver asks for the new map before it sends anything else.
            ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::ReadOnly) => Next::Again,
            ErrorKind::Server(ServerErrorKind::TryAgain) => Next::AgainAfter(PAUSE * 2_u32.pow(copy)),
            _ if is_lost => Next::AgainAfter(PAUSE * 2_u32.pow(copy)),
            _ => Next::GiveUp,
        }
    }
}

/// Where the primaries are that `CLUSTER SLOTS` names.
fn primaries(slots: Value) -> Result<BTreeSet<(String, u16)>, RedisError> {
    let ranges: Vec<Vec<Value>> = from_redis_value(slots)?;
    let primary = |range: Vec<Value>| {
        let node: Vec<Value> = from_redis_value(range.into_iter().nth(2).unwrap_or_default())?;
        let mut words = node.into_iter();
        let host: Option<String> = from_redis_value(words.next().unwrap_or_default())?;
        let host = host.unwrap_or_default();
        if host == "?" {
            return Err(
                (ErrorKind::ClusterConnectionNotFound, "a node does not know where another is").into()
            );
        }
        Ok((host, from_redis_value(words.next().unwrap_or_default())?))
    };
    ranges.into_iter().map(primary).collect()
}

/// The node that an `ASK` names.
fn next_node(error: &RedisError) -> Option<Place> {
    let (address, _) = error.redirect_node()?;
    NodeAddress::try_from(address).ok().map(Place::NextNode)
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(node: Vec<Value>) -> Value {
        Value::Array(vec![Value::Int(0), Value::Int(9), Value::Array(node)])
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn primaries_are_read_once_and_one_that_nobody_knows_is_not_left_out() {
        let first = || range(vec![text("10.0.0.1"), Value::Int(7000), text("id")]);
        let unnamed = range(vec![Value::Nil, Value::Int(7001)]);
        let found = primaries(Value::Array(vec![first(), unnamed, first()])).unwrap();
        assert_eq!(found, BTreeSet::from([(String::new(), 7001), ("10.0.0.1".to_owned(), 7000)]));
        for strange in [vec![text("?"), Value::Int(1)], vec![text("10.0.0.1")], vec![]] {
            primaries(Value::Array(vec![first(), range(strange)])).unwrap_err();
        }
        primaries(Value::Array(vec![Value::Array(vec![])])).unwrap_err();
    }
}
