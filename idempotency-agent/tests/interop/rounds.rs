//! What the two sides do together.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotency_agent::{
    ConflictMode, EffectError, EffectKey, Intent, Ledger, LedgerScope, Outcome, Refusal,
    ledger::{Resolution, Status},
};
use idempotency_core::LedgerStore;
use serde_json::{Value, json};

use crate::{document, peer::Peer};

const WORKERS: usize = 8;
const KEYS: [&str; 6] = ["A", "B", "C", "D", "É", "😀"];

/// Eight workers on each side ask for the same six refunds, each in an order of its own. Each refund happens once, and
/// every worker of either side is then told what came of it.
pub(crate) async fn race<S: LedgerStore>(peer: &mut Peer, ledger: &Ledger<S>, scope: &str) {
    let executed = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let (ledger, scope, executed) = (ledger.clone(), scope.to_owned(), Arc::clone(&executed));
            tokio::spawn(async move {
                for place in 0..KEYS.len() {
                    let order = KEYS[(place + number) % KEYS.len()];
                    let executed = Arc::clone(&executed);
                    let ask = ledger.effect(&scope, "refund").identity(&json!({"order": order}));
                    let asked = ask.execute(move |_| async move {
                        tokio::time::sleep(Duration::from_millis(2)).await; // the provider's answer takes its time
                        executed.lock().unwrap().push(order);
                        Ok::<_, EffectError>(json!({"by": "rust", "order": order}))
                    });
                    assert!(!matches!(asked.await.unwrap(), Outcome::Executed { late: true, .. }));
                }
            })
        })
        .collect();
    let of_python = peer.ask(json!({"do": "race", "scope": scope, "keys": KEYS, "workers": WORKERS})).await;
    for worker in workers {
        worker.await.unwrap();
    }
    let mut by: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for order in executed.lock().unwrap().iter() {
        by.entry((*order).to_owned()).or_default().push("rust");
    }
    for order in of_python.as_array().unwrap() {
        by.entry(order.as_str().unwrap().to_owned()).or_default().push("python");
    }
    assert_eq!(by.len(), KEYS.len(), "{by:?}");
    for (order, by) in by {
        assert_eq!(by.len(), 1, "order {order} was refunded by {by:?}");
        let came_to = json!({"by": by[0], "order": order});
        let ask = ledger.effect(scope, "refund").identity(&json!({"order": order}));
        let replayed =
            ask.execute(|_| async { Err::<Value, _>(EffectError::unknown("done twice")) }).await.unwrap();
        assert!(matches!(&replayed, Outcome::Replayed(value) if *value == came_to), "{replayed:?}");
        let order = json!({"do": "once", "scope": scope, "intent": "refund", "payload": {"order": order}, "fails": true});
        let replayed = peer.ask(order).await;
        assert_eq!((&replayed["status"], &replayed["value"]), (&json!("replayed"), &came_to));
    }
}

/// A job that one side begins is delivered to the other: what the first wrote is not written again, and the first may
/// write no more.
pub(crate) async fn redelivery<S: LedgerStore>(peer: &mut Peer, ledger: &Ledger<S>, scope: &str, round: u32) {
    let job = format!("job {round}");
    let write =
        |run: &str, payload: u32| json!({"do": "write", "run": run, "intent": "reply", "payload": payload});
    let begin = json!({"do": "begin", "scope": scope, "run": job});
    let reply = |run: &idempotency_agent::Run<S>, payload: u32| {
        let ask = run.effect("reply").identity(&payload).conflict(ConflictMode::None);
        ask.execute(move |_| async move { Ok::<_, EffectError>(json!({"by": "rust", "payload": payload})) })
    };
    let heartbeat = json!({"do": "heartbeat", "run": job});
    if round.is_multiple_of(2) {
        let first = ledger.run(scope).id(&job).begin().await.unwrap();
        assert!(reply(&first, 1).await.unwrap().is_done() && first.heartbeat().await.unwrap());
        assert_eq!(peer.ask(begin).await, json!({"canWrite": true, "alreadyWrote": true}));
        assert_eq!(peer.ask(write(&job, 1)).await["value"], json!({"by": "rust", "payload": 1}));
        assert_eq!(peer.ask(write(&job, 2)).await["status"], "executed");
        let late = reply(&first, 3).await.unwrap();
        assert!(matches!(late, Outcome::Refused(Refusal::Superseded)), "{late:?}");
        assert!(!first.heartbeat().await.unwrap());
        peer.ask(json!({"do": "end", "run": job})).await;
        assert!(!ledger.run(scope).id(&job).begin().await.unwrap().can_write());
    } else {
        assert_eq!(peer.ask(begin.clone()).await, json!({"canWrite": true, "alreadyWrote": false}));
        assert_eq!(peer.ask(write(&job, 1)).await["status"], "executed");
        let second = ledger.run(scope).id(&job).begin().await.unwrap();
        assert!(second.can_write() && second.already_wrote());
        let replayed = reply(&second, 1).await.unwrap();
        assert!(matches!(replayed, Outcome::Replayed(value) if value["by"] == "python"));
        assert!(reply(&second, 2).await.unwrap().is_done());
        let late = peer.ask(write(&job, 3)).await;
        assert_eq!((&late["status"], &late["reason"]), (&json!("refused"), &json!("superseded")));
        assert_eq!(peer.ask(heartbeat).await, json!(false));
        second.end("completed").await.unwrap();
        assert_eq!(peer.ask(begin).await, json!({"canWrite": false, "alreadyWrote": true}));
    }
}

/// What one side leaves in doubt the other does not do again, and resolves; the first is then told.
pub(crate) async fn doubt<S: LedgerStore>(peer: &mut Peer, ledger: &Ledger<S>, scope: &str, round: u32) {
    let identity = json!({"round": round, "amount": 12.5});
    let once = |fails: bool| json!({"do": "once", "scope": scope, "intent": "mail", "payload": identity, "fails": fails});
    let ask = || ledger.effect(scope, "mail").identity(&identity).summary("a mail");
    let key = EffectKey::identified(&Intent::new("mail").unwrap(), &identity).unwrap();
    let named = LedgerScope::new(scope).unwrap();
    if round.is_multiple_of(2) {
        let lost = ask().execute(|_| async { Err::<Value, _>(EffectError::unknown("the answer was lost")) });
        assert!(matches!(lost.await.unwrap(), Outcome::Ambiguous { .. }));
        assert_eq!(peer.ask(once(false)).await["status"], "ambiguous");
        let resolve = json!({"do": "resolve", "scope": scope, "intent": "mail", "payload": identity, "outcome": "not_applied"});
        assert_eq!(peer.ask(resolve).await, json!(true));
        let again =
            ask().execute(|fx| async move { Ok::<_, EffectError>(json!(fx.attempt())) }).await.unwrap();
        assert!(matches!(again, Outcome::Executed { value, late: false } if value == 2));
    } else {
        assert_eq!(peer.ask(once(true)).await["status"], "ambiguous");
        let doubt = ask().execute(|_| async { Ok::<_, EffectError>(json!("done twice")) }).await.unwrap();
        assert!(matches!(doubt, Outcome::Ambiguous { error: None, .. }));
        let result = Some(idempotency_agent::json::Raw::of(&"found").unwrap());
        let resolved = ledger.resolve(&named, &key, Resolution::Committed, result, None).await.unwrap();
        assert!(resolved.is_some());
        let replayed = peer.ask(once(true)).await;
        assert_eq!((&replayed["status"], &replayed["value"]), (&json!("replayed"), &json!("found")));
    }
    assert_eq!(ledger.check(&named, &key).await.unwrap().status, Some(Status::Committed));
}

/// Both sides read the same, no entry lacks a field, and what only one of them knows is still there.
pub(crate) async fn the_same_history<S: LedgerStore>(peer: &mut Peer, ledger: &Ledger<S>, scope: &str) {
    let mut of_python: Vec<(String, String)> =
        serde_json::from_value(peer.ask(json!({"do": "history", "scope": scope})).await).unwrap();
    let own = ledger.history(&LedgerScope::new(scope).unwrap()).await.unwrap();
    let mut own: Vec<(String, String)> =
        own.into_iter().map(|(effect, status)| (effect.key, status.name().to_owned())).collect();
    own.sort();
    of_python.sort();
    assert_eq!(own, of_python);
    // Six refunds, two replies, a mail.
    assert_eq!(own.len(), 9, "{own:?}");
    let document = document(ledger, scope).await;
    let fields = [
        "key",
        "scope",
        "intent",
        "status",
        "attempt",
        "attemptId",
        "runId",
        "token",
        "summary",
        "error",
        "createdAt",
        "claimedAt",
        "settledAt",
        "claimSeq",
        "settleSeq",
        "result",
    ];
    let mut by_rust = 0;
    for (key, effect) in document["effects"].as_object().unwrap() {
        for field in fields {
            assert!(effect.get(field).is_some(), "{key} lacks {field}: {effect}");
        }
        by_rust += usize::from(effect.get("deadlineAt").is_some());
        // Who executed an effect says so; only entries of Rust carry a deadline of their own, and keep it whoever writes.
        if effect["result"]["by"] == "python" {
            assert!(effect.get("deadlineAt").is_none(), "{effect}");
        } else if effect["result"]["by"] == "rust" {
            assert!(effect.get("deadlineAt").is_some(), "{effect}");
        }
    }
    assert!(by_rust > 0);
    assert_eq!(document["runs"].as_object().unwrap().len(), 1);
}
