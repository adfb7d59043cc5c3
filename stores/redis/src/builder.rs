//! Opening a store: what may be chosen, and what is refused.

use std::{fmt, sync::Arc, time::Duration};

use idempotency_core::Bells;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, io::tcp::TcpSettings};

use crate::{
    Eviction, OpenError, RedisStore,
    ears::Ears,
    keys::Keys,
    link::{Link, Single, Wire},
    server::Servers,
};

/// Below the 2 s an engine gives a store call.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Longer than anybody waits, and within what the runtime's timers can hold.
const MOST_PATIENCE: Duration = Duration::from_secs(3_600);

/// What may be chosen before a [`RedisStore`] is opened.
#[must_use]
pub struct RedisStoreBuilder {
    prefix: String,
    patience: Duration,
    accepts_eviction: bool,
}

impl RedisStoreBuilder {
    pub(crate) fn new() -> Self {
        Self { prefix: Keys::DEFAULT.to_owned(), patience: PATIENCE, accepts_eviction: false }
    }

    /// What the keys begin with, `idempotency:` unless set: 1 to 256 bytes. Stores with prefixes of their own share no
    /// records, unless one prefix is the beginning of another and a listing walks over both.
    ///
    /// In a cluster, a prefix with a part in braces puts all records on one node.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a call takes at most: 1.5 s unless set, at most an hour; half of it, if a connection must be opened
    /// first. Nobody knows what became of a call that got no answer by then. Keep it below the engine's store timeout
    /// (2 s), or a call that was not even sent is cut short without being told so.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(MOST_PATIENCE);
        self
    }

    /// Opens the store even where servers remove keys when their memory is full.
    ///
    /// An operation whose record is removed runs again: a payment is made twice. Only where that is acceptable, and the
    /// policy cannot be set to `noeviction`, say so here.
    pub fn accept_eviction(mut self) -> Self {
        self.accepts_eviction = true;
        self
    }

    /// Opens the store on the server at `url`, `redis://user:password@host:port/database`; `rediss://` with the feature
    /// `tls`.
    ///
    /// # Errors
    /// [`OpenError`] when the server does not answer, refuses, is a node of a cluster, or would remove records that are
    /// needed.
    pub async fn connect(self, url: &str) -> Result<RedisStore, OpenError> {
        let client = client(url)?;
        let wire = Wire::Single(Box::new(Single::new(client.clone(), self.patience)));
        self.open(wire, vec![client], IsCluster::No).await
    }

    /// Opens the store on the cluster that one of the servers at `urls` belongs to: name several, since one may be down.
    /// User, password and TLS are those of the first URL.
    ///
    /// # Errors
    /// [`OpenError`] when none of the servers answers, one refuses, or one would remove records that are needed.
    #[cfg(feature = "cluster")]
    pub async fn connect_cluster(
        self,
        urls: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<RedisStore, OpenError> {
        let urls: Vec<_> = urls.into_iter().collect();
        let seeds = urls.iter().map(|url| info(url.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let clients = urls.iter().map(|url| client(url.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let cluster = crate::link::Cluster::connect(seeds, self.patience).await?;
        self.open(Wire::Cluster(Box::new(cluster)), clients, IsCluster::Yes).await
    }

    async fn open(
        self,
        wire: Wire,
        clients: Vec<Client>,
        expected: IsCluster,
    ) -> Result<RedisStore, OpenError> {
        let keys = Keys::begin_with(&self.prefix)?;
        let link = Link::new(wire, self.patience);
        let servers = Servers::probe(&link).await?;
        if servers.are_a_cluster && expected == IsCluster::No {
            return Err(OpenError::Cluster);
        }
        match &servers.eviction {
            Eviction::Never => {}
            Eviction::By(policy) if self.accepts_eviction => {
                tracing::warn!(
                    policy,
                    "redis removes idempotency records when its memory is full; they were accepted to run again"
                );
            }
            Eviction::By(policy) => return Err(OpenError::Evicts { policy: policy.clone() }),
            Eviction::Unknown => {
                tracing::warn!("redis does not say whether it removes records when its memory is full");
            }
        }
        let bells = Arc::new(Bells::new());
        let ears = Ears::new(clients, keys.channel(), Arc::clone(&bells), self.patience);
        Ok(RedisStore::new(link, keys, bells, ears, servers.eviction))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsCluster {
    No,
    #[cfg(feature = "cluster")]
    Yes,
}

fn info(url: &str) -> Result<ConnectionInfo, OpenError> {
    let info = url.into_connection_info().map_err(|error| OpenError::Url(error.into()))?;
    // A user needs no right to say which driver this is.
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    Ok(info.set_redis_settings(settings).set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

fn client(url: &str) -> Result<Client, OpenError> {
    #[cfg(feature = "tls")]
    crate::tls::choose();
    Client::open(info(url)?).map_err(|error| OpenError::Url(error.into()))
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("prefix", &self.prefix)
            .field("patience", &self.patience)
            .field("accepts_eviction", &self.accepts_eviction)
            .finish()
    }
}
