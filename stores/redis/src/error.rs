//! What fails. Failures are told apart by the server's error code, never by its text.

use std::error::Error;

use idempotency_core::{Address, CorruptRecord, Fate, StoreError, StoreErrorKind};
use redis::{ErrorKind, RedisError, ServerErrorKind};

type Source = Box<dyn Error + Send + Sync>;

/// Why a [`RedisStore`](crate::RedisStore) was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names no server, or one that this build cannot reach: `rediss` needs the feature `tls`.
    #[error("the URL names no Redis server that this build can reach")]
    Url(#[source] Source),
    /// The prefix is empty, or longer than 256 bytes.
    #[error("the prefix of the keys must have 1 to 256 bytes")]
    Prefix,
    /// The server does not answer in time.
    #[error("the server does not answer")]
    Unavailable(#[source] Source),
    /// The server refuses the user, or what the store needs.
    #[error("the server refuses the user, or what the store needs")]
    Refused(#[source] Source),
    /// The server removes keys when its memory is full. One that is removed early lets its operation run again.
    #[error(
        "the server removes keys when its memory is full (maxmemory-policy {policy}), and an operation whose record is \
         removed runs again: set maxmemory-policy to noeviction, or say accept_eviction()"
    )]
    Evicts {
        /// The server's `maxmemory-policy`.
        policy: String,
    },
    /// The server is a node of a cluster, and was not asked as one.
    #[error("the server is a node of a cluster: connect with connect_cluster() of the feature `cluster`")]
    Cluster,
}

impl From<RedisError> for OpenError {
    fn from(error: RedisError) -> Self {
        match kind_of(&error) {
            StoreErrorKind::Unavailable => Self::Unavailable(error.into()),
            _ => Self::Refused(error.into()),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::Unavailable(_) => StoreErrorKind::Unavailable,
            OpenError::Url(_)
            | OpenError::Prefix
            | OpenError::Refused(_)
            | OpenError::Evicts { .. }
            | OpenError::Cluster => StoreErrorKind::Refused,
        };
        Self::new(kind, Fate::NotApplied).with_source(error)
    }
}

/// What a script answers that none of ours does.
#[derive(Debug, thiserror::Error)]
#[error("the server's answer is none that the store's scripts give")]
pub(crate) struct StrangeAnswer;

/// A call that failed, and what became of it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: RedisError,
    pub(crate) fate: Fate,
}

impl Failure {
    /// The same, of a call on the record at `address`: where a key holds another kind of value, that is a record that
    /// cannot be read.
    pub(crate) fn at(self, address: &Address) -> StoreError {
        match self.error.code() {
            Some(WRONG_TYPE) => {
                let corrupt = CorruptRecord::at_column("type").at(*address).with_cause(self.error);
                StoreError::from(corrupt).with_fate(self.fate)
            }
            _ => self.into(),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(Failure { error, fate }: Failure) -> Self {
        Self::new(kind_of(&error), fate).with_source(error)
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        failure.error.into()
    }
}

impl From<StrangeAnswer> for StoreError {
    fn from(answer: StrangeAnswer) -> Self {
        Self::new(StoreErrorKind::Refused, Fate::Unknown).with_source(answer)
    }
}

/// Whether the server itself refused: then the script did not run, or stopped before it wrote. What a proxy says that
/// lost its server has none of its codes.
pub(crate) fn is_refusal(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(_) => true,
        ErrorKind::Extension => error.code().is_some_and(|code| REFUSALS.contains(&code)),
        _ => false,
    }
}

/// Whether the server no longer has, or never had, the script.
pub(crate) fn is_without_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

// As src/server.c of Redis and of Valkey has them.
const OUT_OF_MEMORY: &str = "OOM";
const WRONG_TYPE: &str = "WRONGTYPE";

/// The codes of a server's refusals that the driver does not know.
const REFUSALS: [&str; 8] =
    [OUT_OF_MEMORY, WRONG_TYPE, "BUSY", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS", "DENIED"];

fn kind_of(error: &RedisError) -> StoreErrorKind {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => {
            StoreErrorKind::Unavailable
        }
        ErrorKind::Extension if !is_refusal(error) => StoreErrorKind::Unavailable,
        ErrorKind::Server(_) | ErrorKind::Extension => kind_of_code(error.code().unwrap_or_default()),
        _ => StoreErrorKind::Refused,
    }
}

fn kind_of_code(code: &str) -> StoreErrorKind {
    match code {
        OUT_OF_MEMORY => StoreErrorKind::Full,
        "READONLY" | "LOADING" | "BUSY" | "MISCONF" | "NOREPLICAS" | "MASTERDOWN" | "CLUSTERDOWN"
        | "TRYAGAIN" | "MOVED" | "ASK" => StoreErrorKind::Unavailable,
        WRONG_TYPE => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Refused,
    }
}
