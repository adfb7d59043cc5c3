//! The statements that look at many records use their indexes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use idempotency_store_sqlite::SqliteStore;
use scene::beside;
use sqlx::{AssertSqlSafe, Row};

async fn plan(statement: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.db");
    SqliteStore::open(&path).await.unwrap();
    let explained = format!("EXPLAIN QUERY PLAN {}", statement.trim_start_matches(|c| c != '\n'));
    let rows = sqlx::query(AssertSqlSafe(explained)).fetch_all(&mut beside(&path).await).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail") + "\n").collect()
}

#[tokio::test]
async fn a_purge_reads_only_what_it_may_remove() {
    let plan = plan(include_str!("../sql/purge.sql")).await;
    assert!(plan.contains("USING INDEX idempotency_records_removable (removable_at<?)"), "{plan}");
    assert!(!plan.contains("SCAN"), "{plan}");
}

#[tokio::test]
async fn the_records_in_doubt_are_listed_from_their_own_index_without_a_sort() {
    let plan = plan(include_str!("../sql/list_in_doubt.sql")).await;
    assert!(plan.contains("USING INDEX idempotency_records_in_doubt (address>?"), "{plan}");
    assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
}

#[tokio::test]
async fn every_other_statement_finds_its_record_by_address() {
    for statement in [
        include_str!("../sql/claim.sql"),
        include_str!("../sql/record.sql"),
        include_str!("../sql/list.sql"),
        include_str!("../sql/renew.sql"),
        include_str!("../sql/complete.sql"),
        include_str!("../sql/release_not_applied.sql"),
        include_str!("../sql/release_unknown.sql"),
        include_str!("../sql/resolve_applied.sql"),
        include_str!("../sql/resolve_not_applied.sql"),
    ] {
        let plan = plan(statement).await;
        assert!(plan.contains("sqlite_autoindex_idempotency_records_1 (address"), "{statement}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{plan}");
    }
}
