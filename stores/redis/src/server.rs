//! What servers say of themselves when a store is opened.

use redis::{cmd, from_redis_value};

use crate::{OpenError, error::is_refusal, link::Link};

/// How the servers make room when their memory is full, as far as they said when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Eviction {
    /// They remove nothing, and refuse to write instead.
    Never,
    /// One of them removes keys by this `maxmemory-policy`. An operation whose record is removed runs again.
    By(String),
    /// One of them does not say.
    Unknown,
}

/// What the store needs to know of the servers it is connected to.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) are_a_cluster: bool,
    pub(crate) eviction: Eviction,
}

impl Servers {
    pub(crate) async fn probe(link: &Link) -> Result<Self, OpenError> {
        let mut texts = Vec::new();
        for place in link.nodes().await? {
            match link.ask_at(&place, &cmd("INFO")).await {
                Ok(answer) => texts.push(from_redis_value(answer).unwrap_or_default()),
                Err(failure) if is_refusal(&failure.error) => texts.push(String::new()), // a user may not ask
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(Self::read(&texts))
    }

    fn read(texts: &[String]) -> Self {
        let are_a_cluster = texts.iter().any(|text| field(text, "cluster_enabled") == Some("1"));
        let policies: Option<Vec<&str>> = texts.iter().map(|text| field(text, "maxmemory_policy")).collect();
        let eviction = match policies.as_deref() {
            None | Some([]) => Eviction::Unknown,
            Some(policies) => match policies.iter().find(|policy| **policy != "noeviction") {
                Some(policy) => Eviction::By((*policy).to_owned()),
                None => Eviction::Never,
            },
        };
        Self { are_a_cluster, eviction }
    }
}

/// The value of a line `name:value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Servers {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Servers::read(&texts)
    }

    const QUIET: &str =
        "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Cluster\r\ncluster_enabled:0\r\n";
    const LOUD: &str = "# Memory\r\nmaxmemory_policy:volatile-lru\r\n# Cluster\r\ncluster_enabled:1\r\n";

    #[test]
    fn the_worst_of_several_servers_counts() {
        assert_eq!(read(&[QUIET, QUIET]).eviction, Eviction::Never);
        assert_eq!(read(&[QUIET, LOUD]).eviction, Eviction::By("volatile-lru".to_owned()));
        assert_eq!(read(&[QUIET, "# Memory\r\n"]).eviction, Eviction::Unknown);
        assert_eq!(read(&[]).eviction, Eviction::Unknown);
    }

    #[test]
    fn a_node_of_a_cluster_says_so() {
        assert!(!read(&[QUIET]).are_a_cluster);
        assert!(read(&[LOUD]).are_a_cluster);
    }
}
