//! The scripts, and how a server is asked to run one.

use std::sync::LazyLock;

use redis::Cmd;

/// A script of `lua/`. Servers know it by its digest once they have run it, and may forget it at any time.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    digest: String,
}

/// How a script is named to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// By its digest, which is short.
    Digest,
    /// By its source, which every server knows.
    Source,
}

impl Script {
    fn new(source: &'static str) -> Self {
        Self { source, digest: redis::Script::new(source).get_hash().to_owned() }
    }

    /// The command that runs it on the record at `key`; `size` is how many bytes of arguments follow, or more.
    pub(crate) fn on(&self, key: &[u8], name: Name, size: usize) -> Cmd {
        let (verb, text) = match name {
            Name::Digest => ("EVALSHA", self.digest.as_str()),
            Name::Source => ("EVAL", self.source),
        };
        let mut command = Cmd::with_capacity(9, verb.len() + text.len() + 1 + key.len() + size);
        command.arg(verb).arg(text).arg("1").arg(key);
        command
    }
}

macro_rules! script {
    ($($part:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!(concat!("../lua/", $part, ".lua")), "\n"),+)))
    };
}

pub(crate) static CLAIM: LazyLock<Script> = script!("record", "claim");
pub(crate) static LOOK: LazyLock<Script> = script!("look");
pub(crate) static RENEW: LazyLock<Script> = script!("record", "put", "renew");
pub(crate) static COMPLETE: LazyLock<Script> = script!("record", "complete");
pub(crate) static RELEASE_NOT_APPLIED: LazyLock<Script> = script!("record", "put", "release_not_applied");
pub(crate) static RELEASE_UNKNOWN: LazyLock<Script> = script!("record", "put", "release_unknown");
pub(crate) static RESOLVE: LazyLock<Script> = script!("record", "put", "resolve");
pub(crate) static LEDGER_READ: LazyLock<Script> = script!("ledger_read");
pub(crate) static LEDGER_WRITE: LazyLock<Script> = script!("ledger_write");
pub(crate) static WAIT: LazyLock<Script> = script!("record", "wait");
