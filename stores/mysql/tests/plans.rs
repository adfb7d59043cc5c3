//! Every statement finds its records by an index, in a table of any size: one that read a small table from end to end
//! would wait for records that are none of its business.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scene;

use scene::{Database, run};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection, Row};

/// How the server goes about a statement of `sql/`.
#[derive(Debug)]
struct Plan {
    kind: String,
    key: String,
    extra: String,
}

async fn plan(connection: &mut MySqlConnection, table: &str, statement: &str) -> Plan {
    let code =
        |text: &str| text.lines().filter_map(|line| line.split("--").next()).collect::<Vec<_>>().join(" ");
    let address = "x'ab00000000000000000000000000000000000000000000000000000000000000'";
    let addresses: Vec<String> = (0..500).map(|_| address.to_owned()).collect();
    let statement = code(statement)
        .replace("SET TRANSACTION ISOLATION LEVEL READ COMMITTED;", "")
        .replace("{addresses}", &addresses.join(", "))
        .replace("{record_columns}", &code(include_str!("../sql/record_columns.sql")))
        .replace("{now}", &code(include_str!("../sql/now.sql")))
        .replace("{records}", &format!("`{table}`"))
        .replace("address = ?", &format!("address = {address}"))
        .replace("COALESCE(?, x'')", "COALESCE(x'00', x'')")
        .replace("holder = ?", "holder = x'00'")
        .replace('?', "7");
    let explained = AssertSqlSafe(format!("EXPLAIN {statement}"));
    let row = connection.fetch_one(sqlx::raw_sql(explained)).await.unwrap();
    let text = |column| row.get::<Option<String>, _>(column).unwrap_or_default();
    Plan { kind: text("type"), key: text("key"), extra: text("Extra") }
}

/// A table of that many records: half of them over, a few in doubt, the rest in flight.
async fn table_of(database: &Database, records: usize) -> (MySqlConnection, String) {
    let (_, table) = database.store().await;
    let mut connection = database.beside().await;
    let fill = format!(
        "INSERT INTO {{t}} (address, phase, holder, fence, attempt, on_lapse, retention, fingerprint, until)
         SELECT UNHEX(SHA2(seq, 256)), IF(seq % 2, 3, IF(seq % 10, 1, 4)), REPEAT('h', 16), seq, 1, 0, 0,
                IF(seq % 2, NULL, CONCAT(x'02', REPEAT('f', 104))),
                IF(seq % 2, seq, IF(seq % 10, 9000000000000000, NULL))
         FROM seq_1_to_{records}; ANALYZE TABLE {{t}}"
    );
    run(&mut connection, &table, &fill).await;
    (connection, table)
}

const SIZES: [usize; 5] = [1, 2, 5, 50, 5_000];

#[tokio::test]
async fn every_transition_finds_its_record_by_address() {
    let Some(database) = Database::reach() else { return };
    for records in SIZES {
        let (mut connection, table) = table_of(&database, records).await;
        for statement in [
            include_str!("../sql/record.sql"),
            include_str!("../sql/renew.sql"),
            include_str!("../sql/complete.sql"),
            include_str!("../sql/release_not_applied.sql"),
            include_str!("../sql/release_unknown.sql"),
            include_str!("../sql/resolve_applied.sql"),
            include_str!("../sql/resolve_not_applied.sql"),
            include_str!("../sql/remove.sql"),
        ] {
            let plan = plan(&mut connection, &table, statement).await;
            let none = plan.extra.contains("Impossible WHERE"); // a look that found no such record
            assert!(none || plan.key == "PRIMARY", "{records} records: {statement} {plan:?}");
            assert!(["", "range", "const"].contains(&&*plan.kind), "{records} records: {statement} {plan:?}");
        }
    }
}

#[tokio::test]
async fn what_is_due_or_in_doubt_is_found_by_its_own_index_without_a_sort() {
    let Some(database) = Database::reach() else { return };
    for records in SIZES {
        let (mut connection, table) = table_of(&database, records).await;
        for (statement, kinds) in [
            (include_str!("../sql/due.sql"), ["range"].as_slice()),
            (include_str!("../sql/list_in_doubt.sql"), ["range", "ref"].as_slice()),
        ] {
            let plan = plan(&mut connection, &table, statement).await;
            assert_eq!(plan.key, "removable", "{records} records: {statement} {plan:?}");
            assert!(kinds.contains(&&*plan.kind), "{records} records: {statement} {plan:?}");
            assert!(!plan.extra.contains("filesort"), "{records} records: {statement} {plan:?}");
        }
        let plan = plan(&mut connection, &table, include_str!("../sql/list.sql")).await;
        assert!(plan.key == "PRIMARY" && !plan.extra.contains("filesort"), "{records} records: {plan:?}");
    }
}
