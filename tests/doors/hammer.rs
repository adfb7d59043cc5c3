//! Many connections, few keys, clients that vanish at any moment.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use bytes::Bytes;
use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::{
    caller::{Call, Caller, Page, Told},
    server::{Setting, until},
};

const CONNECTIONS: u64 = 200;
const KEYS: usize = 50;
const TRIES: usize = 5;

/// The bodies that answered each key with success.
type Bodies = HashMap<usize, HashSet<Bytes>>;

pub(crate) async fn keys_run_once_while_clients_vanish(setting: Setting) {
    let server = setting.start().await;
    let callers =
        (0..CONNECTIONS).map(|seed| tokio::spawn(impatient(server.caller.stranger(), Rng::with_seed(seed))));
    let (mut bodies, mut vanished) = (Bodies::new(), 0);
    for caller in join_all(callers).await {
        let (answered, gone) = caller.unwrap();
        vanished += gone;
        for (key, body) in answered {
            bodies.entry(key).or_default().insert(body);
        }
    }
    let all = CONNECTIONS as usize * TRIES;
    assert!(vanished > all / 10, "only {vanished} of {all} clients vanished");
    for key in 0..KEYS {
        let body = until("the key answers", async || match server.told(call(key)).await {
            Told::Ran(answer) | Told::Replayed(answer) => Some(answer.body),
            Told::InFlight { .. } | Told::Down { .. } => None,
            other => panic!("{key}: {other:?}"),
        });
        bodies.entry(key).or_default().insert(body.await);
    }
    assert_eq!(server.runs().await, KEYS as u64);
    let distinct: HashSet<_> = bodies.values().flatten().collect();
    assert!(bodies.values().all(|bodies| bodies.len() == 1), "a key had two answers: {bodies:?}");
    assert_eq!(distinct.len(), KEYS, "two keys had one answer");
    println!("{all} requests, {vanished} vanished, {KEYS} keys, {KEYS} runs");
}

/// Sends for keys drawn at random and waits for a moment drawn at random.
async fn impatient(caller: Caller, mut rng: Rng) -> (Vec<(usize, Bytes)>, usize) {
    let (mut answered, mut vanished) = (Vec::new(), 0);
    for _ in 0..TRIES {
        let key = rng.usize(..KEYS);
        // Of any length, and often of none: a server that is quick is left as well.
        let patience = Duration::from_micros(rng.u64(..400_000) >> rng.u32(..10));
        match timeout(patience, caller.send(call(key))).await {
            Ok(Told::Ran(answer) | Told::Replayed(answer)) => answered.push((key, answer.body)),
            // A store that so many calls keep busy may be too slow for some.
            Ok(Told::InFlight { .. } | Told::Down { .. }) => {}
            Ok(other) => panic!("{key}: {other:?}"),
            Err(_) => vanished += 1,
        }
    }
    (answered, vanished)
}

fn call(key: usize) -> Call {
    Call::to(Page::Count { ms: key as u64 % 10 * 5 }, &format!("key-{key}"))
}
