//! A cluster: the driver knows its nodes, and finds them again. It sends nothing twice by itself, since only who counts
//! the copies knows what became of a call.

use std::{fmt, time::Duration};

use futures_util::TryFutureExt;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline, RedisError,
    ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, NodeAddress},
    cluster_async::ClusterConnection,
    cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo},
    from_redis_value,
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
            Place::Node(node) => {
                let route = RoutingInfo::SingleNode(address(node));
                call.await_answer(connection.route_command(command.clone(), route)).await
            }
            Place::NextNode(node) => {
                let mut connection = self.connect_to(node).await?;
                let mut asked = Pipeline::with_capacity(2);
                asked.cmd("ASKING").add_command(command.clone());
                let answers = connection.req_packed_commands(&asked, 1, 1);
                call.await_answer(answers.map_ok(|mut answers| answers.pop().unwrap_or_default())).await
            }
        }
    }

    /// A connection of its own to a node that the driver does not know yet: it gets its first slots just now.
    async fn connect_to(&self, node: &NodeAddress) -> Result<MultiplexedConnection, RedisError> {
        let (host, port) = (node.host().to_owned(), node.port());
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

    /// What each node that holds records answers.
    pub(super) async fn ask_all(&self, command: &Cmd) -> Result<Vec<(Place, Value)>, RedisError> {
        let everywhere = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let answers = self.connection.clone().route_command(command.clone(), everywhere).await?;
        let Value::Map(answers) = answers.extract_error()? else { return Ok(Vec::new()) };
        let place = |(address, answer)| {
            let address: String = from_redis_value(address)?;
            Ok((Place::Node(NodeAddress::try_from(address.as_str())?), answer))
        };
        answers.into_iter().map(place).collect()
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

fn address(node: &NodeAddress) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::ByAddress { host: node.host().to_owned(), port: node.port() }
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
