//! How the server finds what a statement is about, on a table that it knows nothing about yet.

use idempotency_services::Server;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::*;
use crate::PostgresStore;

/// The plan of a statement as every call has it, whatever its values are.
async fn plan(connection: &mut PgConnection, statement: &Statement) -> String {
    let text = &statement.0;
    let values = (1..=9).take_while(|number| text.contains(&format!("${number}"))).count();
    let values = vec!["NULL"; values].join(", ");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(format!("PREPARE planned AS {text}")))).await.unwrap();
    let values = if values.is_empty() { values } else { format!("({values})") };
    let explain = sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN EXECUTE planned{values}")));
    let plan: Vec<String> = explain.persistent(false).fetch_all(&mut *connection).await.unwrap();
    connection.execute("DEALLOCATE planned").await.unwrap();
    plan.join("\n")
}

#[tokio::test]
async fn every_statement_finds_its_records_by_an_index() {
    let Some(url) = Server::Postgres.url() else { return };
    let schema = format!("idempotency_test_plans_{}", std::process::id());
    let names = Names { schema: schema.clone(), records: Names::RECORDS.to_owned() };
    PostgresStore::builder().schema(&schema).connect(&url).await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    connection.execute("SET plan_cache_mode = force_generic_plan").await.unwrap();

    let statements = Statements::on(&names);
    let by_address = [
        &statements.record,
        &statements.standing,
        &statements.renew,
        &statements.complete,
        &statements.release_not_applied,
        &statements.release_unknown,
        &statements.resolve_applied,
        &statements.resolve_not_applied,
        &statements.list,
        &statements.wait,
        &statements.fence,
    ];
    // Planned anew each time, for a table as large as it is by then: it may read what it removes of a small one.
    let by_due = [&statements.purge, &statements.list_in_doubt];
    let mut plans = Vec::new();
    for (index, statements) in
        [("idempotency_records_key", &by_address[..]), ("idempotency_records_due", &by_due)]
    {
        for statement in statements {
            plans.push((index, plan(&mut connection, statement).await));
        }
    }
    let drop = format!("DROP SCHEMA {schema} CASCADE");
    connection.execute(sqlx::raw_sql(AssertSqlSafe(drop))).await.unwrap();
    for (index, plan) in plans {
        let (finding, _) = plan.split_once("CTE removed").unwrap_or((&plan, ""));
        assert!(finding.contains(index) && !finding.contains("Seq Scan"), "{index}:\n{plan}");
    }
}
