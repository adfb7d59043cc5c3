//! The ledger in Redis under every law of its suite, in both forms, on a server and on a cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_core::{LedgerLayout, LedgerStore, Motion, Revision};
use idempotency_store_contract::{ledger::LedgerCandidate, ledger_contract};
use idempotency_store_redis::RedisLedger;
use scene::Records;

struct Redis {
    records: Records,
    layout: LedgerLayout,
}

impl LedgerCandidate for Redis {
    type Store = RedisLedger;

    async fn open(&self) -> RedisLedger {
        let ledger = self.records.store().await.ledger();
        let ledger = if self.layout == LedgerLayout::Whole { ledger.replyonce_compatible() } else { ledger };
        ledger.prefix(self.records.prefix())
    }

    fn forgets(&self) -> bool {
        false
    }
}

/// Where there is no server, and need not be, a test ends here.
macro_rules! records {
    ($make:path, $layout:expr) => {
        match $make() {
            Some(records) => Redis { records, layout: $layout },
            None => return Ok(()),
        }
    };
}

mod whole {
    use super::*;
    ledger_contract!((records!(Records::on_the_server, LedgerLayout::Whole)));
}

mod split {
    use super::*;
    ledger_contract!((records!(Records::on_the_server, LedgerLayout::Split)));
}

mod split_on_a_cluster {
    use super::*;
    ledger_contract!((records!(Records::on_the_cluster, LedgerLayout::Split)));
}

#[tokio::test]
async fn what_is_pending_does_not_expire_and_what_is_settled_does() {
    let Some(records) = Records::on_the_server() else { return };
    let redis = Redis { records, layout: LedgerLayout::Split };
    let ledger = redis.open().await;
    let client = redis::Client::open(redis.records.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let key = format!("{}:{{scope}}", redis.records.prefix());
    let write = |settled| Revision { head: "{}".to_owned(), sheets: [].into(), settled };
    for (settled, lives) in [(true, true), (false, false), (true, true)] {
        ledger.transact("scope", &[], |_, _| Motion::Write(write(settled), ())).await.unwrap();
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert_eq!(left > 0, lives, "{settled}: {left}");
    }
    let version: String = redis::cmd("HGET").arg(&key).arg("v").query(&mut connection).unwrap();
    assert_eq!(version, "3");
}
