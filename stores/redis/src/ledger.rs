//! Ledgers of agents: a hash a scope, written by comparing its version.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use idempotency_core::{
    Fate, Folio, LedgerLayout, LedgerStore, Motion, Revision, Sheets, StoreError, StoreErrorKind,
    clock::Timestamp,
};
use redis::{Cmd, FromRedisValue, Value};
use tokio::time::sleep;

use crate::{
    error::StrangeAnswer,
    link::{Copies, Link},
    script::{self, Name, Script},
};

/// How often a call decides anew because others wrote meanwhile.
const TIMES: u32 = 200;

/// How long a scope is kept that nobody writes to and of which nothing is pending or in doubt.
const TO_LIVE: Duration = Duration::from_secs(30 * 86_400);

/// Ledgers of agents in Redis. Clones share the connections of the [`RedisStore`](crate::RedisStore) that made it.
///
/// Time is the server's. A scope of which nothing is pending or in doubt expires 30 days after it was written to; any other
/// stays.
#[derive(Clone)]
pub struct RedisLedger {
    link: Arc<Link>,
    prefix: Arc<str>,
    layout: LedgerLayout,
    to_live: Duration,
}

impl RedisLedger {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link, prefix: "idempotency:ledger".into(), layout: LedgerLayout::Split, to_live: TO_LIVE }
    }

    /// The same under keys that begin with `prefix` and a colon.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// The same in the form that workers of replyonce 0.1.3 read and write, under their prefix `replyonce`. Call
    /// [`prefix`](Self::prefix) after this if yours is another.
    #[must_use]
    pub fn replyonce_compatible(self) -> Self {
        Self { layout: LedgerLayout::Whole, ..self }.prefix("replyonce")
    }

    /// The same with settled scopes that stay for `to_live` after they were written to; zero keeps them for ever.
    #[must_use]
    pub fn to_live(self, to_live: Duration) -> Self {
        Self { to_live, ..self }
    }

    async fn run(
        &self,
        script: &Script,
        scope: &str,
        arguments: impl Fn(&mut Cmd) + Sync,
    ) -> Result<Value, StoreError> {
        // The braces keep a scope's key on one node of a cluster, whatever follows it.
        let key = format!("{}:{{{scope}}}", self.prefix).into_bytes();
        let command = |name: Name| {
            let mut command = script.on(&key, name, 64);
            arguments(&mut command);
            command
        };
        Ok(self.link.ask(Copies::Welcome, command).await?)
    }

    async fn found(&self, scope: &str, sheets: Sheets<'_>) -> Result<Found, StoreError> {
        let answer = self.run(&script::LEDGER_READ, scope, |command| match sheets {
            Sheets::All => drop(command.arg("all")),
            Sheets::Named(names) => drop(command.arg("named").arg(names)),
        });
        let (micros, texts): (u64, Vec<Option<String>>) =
            FromRedisValue::from_redis_value(answer.await?).map_err(|_| StrangeAnswer)?;
        let now = Timestamp::from_micros(micros);
        let fields: BTreeMap<String, String> = match sheets {
            Sheets::All => {
                let pairs = texts.chunks_exact(2);
                pairs.filter_map(|pair| Some((pair[0].clone()?, pair[1].clone()?))).collect()
            }
            Sheets::Named(names) => {
                let names = ["s", "v"].into_iter().chain(names.iter().map(String::as_str));
                names.zip(texts).filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
            }
        };
        Ok(Found::new(fields, now, self.layout))
    }

    /// Writes, and says whether the version still was the one that was read.
    async fn write(&self, scope: &str, version: &str, revision: &Revision) -> Result<bool, StoreError> {
        let to_live = if revision.settled { self.to_live.as_millis() } else { 0 };
        let answer = self.run(&script::LEDGER_WRITE, scope, |command| {
            let puts = revision.sheets.values().flatten().count();
            command.arg(version).arg(&revision.head).arg(to_live.to_string()).arg(puts.to_string());
            for (name, sheet) in &revision.sheets {
                if let Some(text) = sheet {
                    command.arg(name).arg(text);
                }
            }
            for (name, _) in revision.sheets.iter().filter(|(_, sheet)| sheet.is_none()) {
                command.arg(name);
            }
        });
        let written: u8 = FromRedisValue::from_redis_value(answer.await?).map_err(|_| StrangeAnswer)?;
        Ok(written == 1)
    }
}

/// What stands for a scope, and of which version it is.
struct Found {
    folio: Folio,
    version: String,
    now: Timestamp,
}

impl Found {
    fn new(mut fields: BTreeMap<String, String>, now: Timestamp, layout: LedgerLayout) -> Self {
        let head = fields.remove("s");
        let version = fields.remove("v").unwrap_or_else(|| "0".to_owned());
        let sheets = if layout == LedgerLayout::Split { fields } else { BTreeMap::new() };
        Self { folio: Folio { head, sheets }, version, now }
    }
}

impl fmt::Debug for RedisLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLedger")
            .field("prefix", &self.prefix)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl LedgerStore for RedisLedger {
    fn layout(&self) -> LedgerLayout {
        self.layout
    }

    async fn transact<V: Send>(
        &self,
        scope: &str,
        sheets: &[String],
        mut law: impl FnMut(&Folio, Timestamp) -> Motion<V> + Send,
    ) -> Result<V, StoreError> {
        let mut asked = Sheets::Named(sheets);
        let mut fate = Fate::NotApplied;
        for round in 0..TIMES {
            let Found { folio, version, now } =
                self.found(scope, asked).await.map_err(|error| error.with_fate(fate))?;
            let (revision, verdict) = match law(&folio, now) {
                Motion::Keep(verdict) => return Ok(verdict),
                Motion::Write(revision, verdict) => (revision, verdict),
                // Others may write in between: the law is then given what they wrote, all of it.
                Motion::ReadAll => {
                    asked = Sheets::All;
                    continue;
                }
            };
            // A copy of the write whose first answer was lost finds another version, and the law finds what it wrote.
            if self.write(scope, &version, &revision).await? {
                return Ok(verdict);
            }
            fate = Fate::Unknown;
            asked = Sheets::Named(sheets);
            let most = 50.min(1 << round.min(6));
            sleep(Duration::from_micros(u64::from(fastrand::u32(..most * 1_000)))).await;
        }
        Err(StoreError::new(StoreErrorKind::Unavailable, fate))
    }

    async fn read(&self, scope: &str, sheets: Sheets<'_>) -> Result<(Folio, Timestamp), StoreError> {
        let Found { folio, now, .. } = self.found(scope, sheets).await?;
        Ok((folio, now))
    }

    /// The server forgets by itself.
    async fn forget(&self, _: Duration, _: u32) -> Result<u32, StoreError> {
        Ok(0)
    }
}
