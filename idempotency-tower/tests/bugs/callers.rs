//! Whose key it is.

use std::sync::{Arc, atomic::AtomicUsize};

use bytes::Bytes;
use futures_util::future::{Either, ready};
use http::{Request, Response, request::Parts};
use http_body_util::Full;
use idempotency_store_memory::MemoryStore;
use idempotency_tower::{IdempotencyLayer, Policy, PolicyBuilder, Scope};
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    bench::{Counter, ask, boxed, counting, keyed, number, shelves, status, with},
    setup::Answer,
};

/// Whom a layer outside has let in. A test's stand-in for an authentication.
#[derive(Clone)]
struct User(&'static str);

/// The organisation in which that user acts.
#[derive(Clone)]
struct Organisation(&'static str);

fn by_user() -> PolicyBuilder {
    Policy::builder()
        .scope(|parts: &Parts| parts.extensions.get::<User>().map(|user| Scope::principal(user.0)))
}

fn of(user: &'static str, body: &'static str) -> Request<Full<Bytes>> {
    with(keyed("1").extension(User(user)), body)
}

#[tokio::test]
async fn bug_050_a_key_belongs_to_one_principal() {
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, by_user());
        let alice = counter.send(of("alice", "a")).await;
        let bob = counter.send(of("bob", "another body")).await;
        assert!(bob.status == 200 && !bob.is_replay(), "{}: {bob:?}", shelf.name);
        assert_ne!(alice.body, bob.body);
        let again = counter.send(of("alice", "a")).await;
        assert!(again.is_replay() && again.body == alice.body);
        assert_eq!(counter.runs(), 2);
    }
}

#[tokio::test]
async fn bug_051_who_has_no_name_shares_nothing_with_others_like_it() {
    let nobody = || with(keyed("k"), "a");
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, by_user());
        for request in [nobody(), nobody(), of("", "a")] {
            let refused = counter.send(request).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (403, "missing-principal"),
                "{}",
                shelf.name
            );
        }
        assert_eq!(counter.runs(), 0);
        let fallback = Counter::on(&shelf.store, by_user().or_shared());
        assert_eq!(fallback.send(nobody()).await.status, 200, "by name only");
        let other = with(keyed("k").header("authorization", "somebody else's"), "a");
        assert_eq!(fallback.send(other).await.code(), "credentials-mismatch", "and even so, nobody's answer");
    }
}

#[tokio::test]
async fn bug_052_no_answer_is_given_past_an_authentication() {
    let runs = Arc::<AtomicUsize>::default();
    let guarded = IdempotencyLayer::with_policy(MemoryStore::new(), by_user().build().unwrap())
        .layer(counting(&runs, number));
    // Outside the layer, as documented: tokens are looked up anew for every request.
    let revoked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let authenticated = service_fn({
        let revoked = Arc::clone(&revoked);
        move |mut request: Request<Full<Bytes>>| {
            let token = request.headers().get("authorization").map(|value| value.as_bytes().to_owned());
            let user = match token.as_deref() {
                Some(b"alice's") if !revoked.load(std::sync::atomic::Ordering::SeqCst) => "alice",
                Some(b"bob's") => "bob",
                _ => return Either::Left(ready(Ok(status(401, "who are you?")))),
            };
            request.extensions_mut().insert(User(user));
            let answer = guarded.clone().oneshot(request);
            Either::Right(async { answer.await.map(|answer: Response<_>| answer.map(boxed)) })
        }
    });
    let send = async |token: Option<&str>| -> Answer {
        let request = token.iter().fold(keyed("k"), |request, token| request.header("authorization", *token));
        ask(&authenticated, with(request, "a")).await
    };
    let alice = send(Some("alice's")).await;
    assert_eq!(send(None).await.status, 401);
    let bob = send(Some("bob's")).await;
    assert!(bob.status == 200 && !bob.is_replay() && bob.body != alice.body, "{bob:?}");
    revoked.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(send(Some("alice's")).await.status, 401, "her own answer too");
}

#[tokio::test]
async fn bug_052_without_a_scope_other_credentials_get_nobodys_answer() {
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, Policy::builder());
        let with_token = |token: &str| with(keyed("k").header("authorization", token), "a");
        let alice = counter.send(with_token("alice's")).await;
        for other in [with(keyed("k"), "a"), with_token("bob's")] {
            let refused = counter.send(other).await;
            assert_eq!((refused.status, refused.code().as_str()), (422, "credentials-mismatch"));
            assert_ne!(refused.body, alice.body);
        }
        assert_eq!(counter.runs(), 1, "{}", shelf.name);
    }
}

#[tokio::test]
async fn bug_053_a_change_of_organisation_is_a_change_of_key_space() {
    let by_organisation = Policy::builder().scope(|parts: &Parts| {
        let user = parts.extensions.get::<User>()?;
        let organisation = parts.extensions.get::<Organisation>()?;
        Some(Scope::principal(user.0).in_tenant(organisation.0))
    });
    let [shelf, _] = shelves().await;
    let counter = Counter::on(&shelf.store, by_organisation);
    let acting_for =
        |organisation| with(keyed("k").extension(User("alice")).extension(Organisation(organisation)), "a");
    let first = counter.send(acting_for("first")).await;
    let second = counter.send(acting_for("second")).await;
    assert!(second.status == 200 && !second.is_replay() && second.body != first.body, "{second:?}");
    assert!(counter.send(acting_for("first")).await.is_replay());
    assert_eq!(counter.runs(), 2);
}
