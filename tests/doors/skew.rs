//! Hosts whose clocks are ten minutes apart, on one store: the store's clock decides, so a lease that is live is nobody
//! else's.

use std::time::Duration;

use http::{StatusCode, header};
use idempotency_services::{Server as Backend, faketime};
use serde_json::json;

use crate::{
    client::{get, post},
    server::{Server, Setting, until},
};

const LEASE_MS: u64 = 1_500;

/// Several leases long: only its renewals keep it.
const RUN: &str = "/orders?ms=4000";

/// What the clocks of two hosts have between them, and a little less.
const MOST_OF_TEN_MINUTES: Duration = Duration::from_secs(590);

async fn hosts_never_overlap(backend: Backend) {
    let (Some(setting), Some(faketime)) = (Setting::on("axum", backend), faketime()) else { return };
    let setting = setting.with_config(json!({ "lease_ms": LEASE_MS }));
    let here = setting.start().await;
    for (number, offset) in ["+10m", "-10m"].into_iter().enumerate() {
        let there = setting.start_under(&faketime, offset, &[]).await;
        assert!(apart(&here, &there).await > MOST_OF_TEN_MINUTES, "the clocks are apart by {offset}");
        let orders = 2 * number as u64;
        run_is_left_alone(&here, &there, &format!("here-first{offset}"), orders).await;
        run_is_left_alone(&there, &here, &format!("there-first{offset}"), orders + 1).await;
    }
}

/// Places one order at `runner`, and asks `other` for it again and again until it is done.
async fn run_is_left_alone(runner: &Server, other: &Server, key: &str, orders_before: u64) {
    let client = runner.client;
    let order = key.to_owned();
    let run = tokio::spawn(async move { client.send(post(RUN, &order)).await });
    until("the order is placed", async || (runner.orders().await > orders_before).then_some(())).await;
    let mut refusals = 0;
    let copy = until("the run is over", async || {
        let copy = other.client.send(post(RUN, key)).await.unwrap();
        refusals += u32::from(copy.code() == "conflict");
        (copy.code() != "conflict").then_some(copy)
    })
    .await;
    let first = run.await.unwrap().unwrap();
    assert!(refusals > 0, "no copy met the run");
    assert_eq!((first.status, first.is_replay()), (StatusCode::CREATED, false));
    assert_eq!((copy.status, copy.is_replay(), copy.body), (StatusCode::CREATED, true, first.body));
    assert_eq!(runner.orders().await, orders_before + 1, "one order");
}

/// How far apart two servers' clocks are, as their answers say.
async fn apart(one: &Server, other: &Server) -> Duration {
    let (one, other) = (date(one).await, date(other).await);
    one.duration_since(other).unwrap_or_else(|error| error.duration())
}

async fn date(server: &Server) -> std::time::SystemTime {
    let answer = server.client.send(get("/counter")).await.unwrap();
    httpdate::parse_http_date(answer.headers[header::DATE].to_str().unwrap()).unwrap()
}

macro_rules! on_every_network_store {
    ($($name:ident: $backend:ident),+ $(,)?) => {
        mod hosts_ten_minutes_apart_never_overlap {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::hosts_never_overlap(super::Backend::$backend).await;
                }
            )+
        }
    };
}

on_every_network_store! {
    postgres: Postgres,
    mysql: MySql,
    redis: Redis,
    redis_cluster: RedisCluster,
    dynamodb: DynamoDb,
}
