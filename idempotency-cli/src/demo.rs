//! `idempotency demo`: the same faults for an agent that is guarded and for one that is not.

use std::{io::IsTerminal, process::ExitCode};

use clap::Args;
use idempotency_core::LedgerStore;
use idempotency_store_memory::MemoryLedger;
use idempotency_store_postgres::PostgresLedger;
use idempotency_store_redis::RedisStore;
use idempotency_store_sqlite::SqliteStore;

mod agent;
mod chance;
mod provider;
mod report;
mod store;
mod world;

use report::Report;
use world::World;

/// Shows what becomes of support conversations whose workers crash, whose jobs are delivered twice, whose customers write
/// again, and whose provider times out: once by an agent without a ledger, once by one with.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many conversations there are.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    conversations: u32,
    /// What decides which faults happen: the same seed is the same story.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// A server or file for the ledger, in real time: `postgres://...`, `redis://...`, or the path of a SQLite file. Without
    /// it the ledger is in memory and time is simulated.
    #[arg(long)]
    store: Option<String>,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Exits with 2 when the guarded agent answered a message twice or not at all, or its store failed.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match told(arguments) {
        Ok(report) => {
            let text = match arguments.json {
                true => report.json(),
                false => report.table(std::io::stdout().is_terminal()),
            };
            println!("{text}");
            if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
        Err(error) => {
            eprintln!("idempotency: {error}");
            ExitCode::from(2)
        }
    }
}

type Told<T> = Result<T, Box<dyn std::error::Error>>;

fn told(arguments: &Arguments) -> Told<Report> {
    let Arguments { conversations, seed, .. } = *arguments;
    let simulated = arguments.store.is_none();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(simulated).build()?;
    // Names that no earlier demo has left in a store.
    let names = if simulated { String::new() } else { format!("demo-{:016x}:", fastrand::u64(..)) };
    runtime.block_on(async {
        let without = World::new(seed, names.clone()).play_unguarded(conversations).await;
        let world = World::new(seed, names);
        let with = match arguments.store.as_deref() {
            None => world.play_guarded(conversations, memory()).await?,
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                let pool = sqlx::PgPool::connect(url).await?;
                world.play_guarded(conversations, PostgresLedger::builder().open(pool).await?).await?
            }
            Some(url) if url.starts_with("redis://") => {
                world.play_guarded(conversations, RedisStore::connect(url).await?.ledger()).await?
            }
            Some(path) => {
                world.play_guarded(conversations, SqliteStore::open(path).await?.ledger().await?).await?
            }
        };
        Ok(Report { conversations, seed, without, with })
    })
}

fn memory() -> impl LedgerStore {
    MemoryLedger::new().with_clock(world::RuntimeClock::new())
}

/// What both sides come to for a seed, in simulated time.
#[cfg(test)]
fn sides(seed: u64, conversations: u32) -> (report::Side, report::Side) {
    let arguments = Arguments { conversations, seed, store: None, json: false };
    let Report { without, with, .. } = told(&arguments).unwrap();
    (without, with)
}

#[cfg(test)]
mod tests;
