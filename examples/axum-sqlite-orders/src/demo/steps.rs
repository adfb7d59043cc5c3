//! The six steps.

use std::path::Path;

use tokio::task::JoinSet;

use super::{
    client::{Answer, Customer},
    report::Report,
    server::Server,
    stage::Pause,
    table,
};
use crate::Failure;

type Result<T = ()> = std::result::Result<T, Failure>;

const ORDERS: &str = "orders written";

pub(super) async fn all(files: &Path, report: &mut Report) -> Result {
    copies(&files.join("copies.db"), report).await?;
    hang_up(&files.join("hang-up.db"), report).await?;
    other_payload(&files.join("other-payload.db"), report).await?;
    other_caller(&files.join("other-caller.db"), report).await?;
    death_before_the_order(&files.join("before.db"), report).await?;
    death_after_the_order(&files.join("after.db"), report).await?;
    the_same_without_unique_key(&files.join("no-unique-key.db"), report).await
}

async fn copies(db: &Path, report: &mut Report) -> Result {
    report.step(1, "Fifty copies of one request arrive at once.");
    let server = Server::start(db, None).await?;
    let alice = Customer::new("alice", server.port);
    let copy = |_| {
        let alice = alice.clone();
        async move { alice.order("order-1", 2).await }
    };
    let answers = (0..50).map(copy).collect::<JoinSet<_>>().join_all().await;
    let (mut first, mut replays, mut conflicts) = (0, 0, 0);
    for answer in answers {
        match answer? {
            answer if answer.is_conflict() => conflicts += 1,
            answer if answer.replayed => replays += 1,
            answer => {
                first += 1;
                report.promise("the first answer", answer, "201 order 1");
            }
        }
    }
    report.promise("first answers", first, 1);
    report.fact("replays of it", replays);
    report.fact("told to come back, the first still ran (409)", conflicts);
    let retry = |_| {
        let alice = alice.clone();
        async move { alice.order_until_answered("order-1", 2).await }
    };
    let mut replayed = 0;
    for answer in (0..conflicts).map(retry).collect::<JoinSet<_>>().join_all().await {
        replayed += u32::from(answer?.replayed);
    }
    report.promise("of those, got the replay on their retry", replayed, conflicts);
    report.promise("answered in all", first + replays + replayed, 50);
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn hang_up(db: &Path, report: &mut Report) -> Result {
    report.step(2, "A client hangs up while its order is being placed, and tries again.");
    let mut server = Server::start(db, Some(Pause::BeforeOrder)).await?;
    let alice = Customer::new("alice", server.port);
    let call = tokio::spawn({
        let alice = alice.clone();
        async move { alice.order("order-1", 2).await }
    });
    server.paused().await?;
    call.abort();
    report.promise("orders written when the client hung up", table::count(db).await?, 0);
    server.go_on().await?;
    let retry = alice.order_until_answered("order-1", 2).await?;
    report.promise("its retry", retry, "201 order 1, a replay");
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn other_payload(db: &Path, report: &mut Report) -> Result {
    report.step(3, "A client uses its key again for another order.");
    let server = Server::start(db, None).await?;
    let alice = Customer::new("alice", server.port);
    report.promise("two packets of tea", alice.order("order-1", 2).await?, "201 order 1");
    let other = alice.order("order-1", 3).await?;
    report.promise("three packets under the same key", other, "422 fingerprint-mismatch in body");
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn other_caller(db: &Path, report: &mut Report) -> Result {
    report.step(4, "Another caller sends the same key and the same body.");
    let server = Server::start(db, None).await?;
    let (alice, mallory) = (Customer::new("alice", server.port), Customer::new("mallory", server.port));
    report.promise("alice", alice.order("order-1", 2).await?, "201 order 1");
    let stranger = mallory.order("order-1", 2).await?;
    let leak = stranger.body.get("id").is_some() || stranger.body.to_string().contains("tea");
    report.promise("mallory", stranger, "422 credentials-mismatch in credentials");
    report.promise("alice's order is in mallory's answer", leak, false);
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn death_before_the_order(db: &Path, report: &mut Report) -> Result {
    report.step(5, "The server is killed (kill -9) before it writes the order.");
    let aftermath = kill_and_retry(db, Pause::BeforeOrder, UniqueKey::Kept).await?;
    report.promise("the client got", aftermath.first_call, "no answer");
    report.promise("orders written when it died", aftermath.written_at_death, 0);
    report.promise("the retry, once the lease has lapsed", aftermath.retry, "201 order 1");
    report.promise("and once more", aftermath.once_more, "201 order 1, a replay");
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn death_after_the_order(db: &Path, report: &mut Report) -> Result {
    report.step(6, "The server is killed (kill -9) after it wrote the order, before that is recorded.");
    let aftermath = kill_and_retry(db, Pause::AfterOrder, UniqueKey::Kept).await?;
    report.promise("the client got", aftermath.first_call, "no answer");
    report.promise("orders written when it died", aftermath.written_at_death, 1);
    report.promise("the retry runs and finds its order", aftermath.retry, "201 order 1");
    report.promise("and once more", aftermath.once_more, "201 order 1, a replay");
    report.promise(ORDERS, table::count(db).await?, 1);
    Ok(())
}

async fn the_same_without_unique_key(db: &Path, report: &mut Report) -> Result {
    report.note(&["", "The same on a table without the unique key:"]);
    let aftermath = kill_and_retry(db, Pause::AfterOrder, UniqueKey::Dropped).await?;
    report.promise("the client got", aftermath.first_call, "no answer");
    report.promise("orders written when it died", aftermath.written_at_death, 1);
    report.promise("the retry runs and orders again", aftermath.retry, "201 order 2");
    report.promise("and once more", aftermath.once_more, "201 order 2, a replay");
    report.promise(ORDERS, table::count(db).await?, 2);
    report.note(&[
        "",
        "The order and the idempotency record are two commits. A death between them leaves an order that the",
        "record knows nothing of. The handler runs again, and only the unique key of the table stops it.",
        "Fenced transactions (planned) will commit both or neither: then no unique key is needed.",
    ]);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UniqueKey {
    Kept,
    Dropped,
}

/// What came of a server's death.
struct Aftermath {
    first_call: String,
    written_at_death: i64,
    retry: Answer,
    once_more: Answer,
}

/// Kills a server while an order pauses in it, starts another on the same file, and orders again.
async fn kill_and_retry(db: &Path, pause: Pause, unique_key: UniqueKey) -> Result<Aftermath> {
    let mut server = start(db, Some(pause), unique_key).await?;
    let alice = Customer::new("alice", server.port);
    let call = tokio::spawn(async move { alice.order("order-1", 2).await });
    server.paused().await?;
    server.kill().await?;
    let first_call = call.await?.map_or_else(|_| "no answer".to_owned(), |answer| answer.to_string());
    let written_at_death = table::count(db).await?;

    let server = start(db, None, unique_key).await?;
    let alice = Customer::new("alice", server.port);
    let retry = alice.order_until_answered("order-1", 2).await?;
    let once_more = alice.order("order-1", 2).await?;
    Ok(Aftermath { first_call, written_at_death, retry, once_more })
}

async fn start(db: &Path, pause: Option<Pause>, unique_key: UniqueKey) -> Result<Server> {
    let server = Server::start(db, pause).await?;
    if unique_key == UniqueKey::Dropped {
        table::drop_unique_key(db).await?;
    }
    Ok(server)
}
