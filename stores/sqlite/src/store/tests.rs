//! What can only be seen or provoked on the store's own connections.

use idempotency_core::{Door, Fingerprint, Holder, Key, Media, OnLapse, Scope};
use sqlx::SqliteConnection;
use tempfile::TempDir;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);
const KEEP: Keep = Keep { replay: DAY, then_reject: DAY };

async fn on_a_file() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("shop.db")).await.unwrap();
    (directory, store)
}

async fn claim(store: &SqliteStore, key: &str) -> Result<Claim<Lease>, StoreError> {
    let address = Address::new(Door::Http, &Scope::shared(), &Key::new(key).unwrap());
    let op = Operation::new(address, Fingerprint::builder().build());
    let bid = Bid { holder: Holder::draw(), lease: DAY, retention: DAY, on_lapse: OnLapse::TakeOver };
    store.claim(&op, &bid).await
}

async fn granted(store: &SqliteStore, key: &str) -> Lease {
    let Claim::Granted(lease) = claim(store, key).await.unwrap() else { panic!("{key} is taken") };
    lease
}

async fn pragmas(connection: &mut SqliteConnection) -> (String, i64, i64) {
    let query = "SELECT journal_mode, synchronous, query_only
                 FROM pragma_journal_mode, pragma_synchronous, pragma_query_only";
    sqlx::query_as(query).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn every_connection_is_set_as_promised() {
    const FULL: i64 = 2;
    let (_directory, store) = on_a_file().await;
    let mut writer = store.writer.pool().acquire().await.unwrap();
    assert_eq!(pragmas(&mut writer).await, ("wal".to_owned(), FULL, 0));

    let mut readers = Vec::new();
    for _ in 0..store.readers.options().get_max_connections() {
        readers.push(store.readers.acquire().await.unwrap());
    }
    assert!(readers.len() > 1);
    for reader in &mut readers {
        assert_eq!(pragmas(reader).await, ("wal".to_owned(), FULL, 1));
        let write = sqlx::query("DELETE FROM idempotency_records").execute(&mut **reader).await;
        assert!(write.is_err(), "a reader wrote");
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_the_writer_goes_on_when_there_is_room() {
    let (_directory, store) = on_a_file().await;
    let lease = granted(&store, "k").await;
    let full = sqlx::raw_sql("PRAGMA max_page_count = 1"); // SQLite takes it as "no more than there are"
    full.execute(store.writer.pool()).await.unwrap();

    let outcome = Outcome::whole(Media(1), vec![7; 1 << 20]);
    let error = store.complete(&lease, &outcome, KEEP).await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Full, Fate::NotApplied));

    let room = sqlx::raw_sql("PRAGMA max_page_count = 4294967294");
    room.execute(store.writer.pool()).await.unwrap();
    assert_eq!(store.complete(&lease, &outcome, KEEP).await.unwrap(), Settled::Applied);
}

#[tokio::test]
async fn a_commit_that_fails_leaves_the_fate_unknown_and_the_writer_usable() {
    let (_directory, store) = on_a_file().await;
    let veto = sqlx::raw_sql(
        "CREATE TABLE parents (id INTEGER PRIMARY KEY);
         CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER veto AFTER INSERT ON idempotency_records BEGIN INSERT INTO children VALUES (1); END",
    );
    veto.execute(store.writer.pool()).await.unwrap();
    let error = claim(&store, "k").await.unwrap_err();
    assert_eq!((error.kind, error.fate), (StoreErrorKind::Refused, Fate::Unknown));

    sqlx::raw_sql("DROP TRIGGER veto").execute(store.writer.pool()).await.unwrap();
    granted(&store, "k").await;
}

#[tokio::test]
async fn a_large_purge_goes_in_batches_to_its_bound() {
    let (_directory, store) = on_a_file().await;
    let released = sqlx::raw_sql(
        "INSERT INTO idempotency_records (address, phase, holder, fence, attempt, on_lapse, retention, until)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1300)
         SELECT CAST(printf('%032d', i) AS BLOB), 3, zeroblob(16), i, 1, 0, 0, 1 FROM n",
    );
    released.execute(store.writer.pool()).await.unwrap();
    granted(&store, "held").await;
    assert_eq!(store.purge(0).await.unwrap(), 0);
    assert_eq!(store.purge(1_100).await.unwrap(), 1_100);
    assert_eq!(store.purge(u32::MAX).await.unwrap(), 200);
    assert_eq!(store.list(Select::All, None, 10).await.unwrap().len(), 1);
}
