//! How keys are spelled, and what is no key.

use http::Request;
use http_body_util::Full;
use idempotency_core::{Address, Door as DoorKind, Key, Scope};
use idempotency_tower::{KeySyntax, Policy};

use crate::{
    bench::{Counter, keyed, shelves, status, with},
    setup::{Door, policy, post},
};

fn door() -> Door {
    Door::answering(policy(), || status(201, "made"))
}

#[tokio::test]
async fn bug_029_quoted_and_bare_are_one_key() {
    let door = door();
    door.send(post("\"K-1\"", "a")).await;
    for spelling in ["K-1", "\"K-1\";v=1", "  K-1\t", " \"K-1\" "] {
        assert!(door.send(post(spelling, "a")).await.is_replay(), "{spelling:?}");
    }
    assert_eq!(door.runs(), 1);
    door.send(post("\"say \\\"K\\\" and \\\\\"", "a")).await;
    assert!(door.send(post("\"say \\\"K\\\" and \\\\\"", "a")).await.is_replay());
    assert_eq!(
        Key::new("say \"K\" and \\").unwrap(),
        KeySyntax::Lenient.read([&br#""say \"K\" and \\""#[..]]).unwrap().unwrap()
    );

    let strict = Door::answering(policy().key_syntax(KeySyntax::Strict), || status(201, "made"));
    let bare = strict.send(post("K-1", "a")).await;
    assert_eq!((bare.status, bare.code().as_str(), strict.runs()), (400, "invalid-key", 0));
    assert_eq!(strict.send(post("\"K-1\"", "a")).await.status, 201);
}

#[tokio::test]
async fn bug_030_a_malformed_key_is_refused_and_never_no_key() {
    let door = door();
    for malformed in ["\"abc", "\"\"", "", "\"a\\x\"", "\"a\"b"] {
        let refused = door.send(post(malformed, "a")).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid-key"), "{malformed:?}");
    }
    assert_eq!(door.runs(), 0);
}

#[tokio::test]
async fn bug_032_keys_and_scopes_that_differ_in_case_are_two_on_every_store() {
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, Policy::builder());
        for (key, body) in [("AbC-K", "1"), ("aBc-K", "2")] {
            let answer = counter.send(with(keyed(key), body)).await;
            assert!(answer.status == 200 && !answer.is_replay(), "{} {key}: {answer:?}", shelf.name);
        }
        assert_eq!(counter.runs(), 2);
        let scoped = Policy::builder()
            .scope(|parts| parts.extensions.get::<&'static str>().map(|user| Scope::principal(*user)));
        let counter = Counter::on(&shelf.store, scoped);
        for user in ["Zoe", "zoe", "Zo\u{e9}", "stra\u{df}e", "strasse"] {
            counter.send(with(keyed("K").extension(user), "a")).await;
        }
        assert_eq!(counter.runs(), 5, "{}", shelf.name);
    }
}

#[tokio::test]
async fn bug_033_long_keys_are_refused_and_none_is_cut_short() {
    for shelf in shelves().await {
        let counter = Counter::on(&shelf.store, Policy::builder());
        for (length, status) in [(1, 200), (255, 200), (256, 400), (257, 400), (8_000, 400)] {
            assert_eq!(counter.send(with(keyed(&"k".repeat(length)), "a")).await.status, status, "{length}");
        }
        let long = |last: &str| "k".repeat(254) + last;
        assert!(!counter.send(with(keyed(&long("a")), "a")).await.is_replay());
        assert!(!counter.send(with(keyed(&long("b")), "a")).await.is_replay(), "a long prefix is not a key");
        assert_eq!(counter.runs(), 4, "{}", shelf.name);
        let scoped = Policy::builder().scope(|_| Some(Scope::principal("s".repeat(200))));
        let counter = Counter::on(&shelf.store, scoped);
        assert_eq!(counter.send(with(keyed(&"k".repeat(255)), "a")).await.status, 200);
    }
}

#[test]
fn bug_035_scope_and_key_cannot_be_split_another_way() {
    for delimiter in ["", ":", "/", "|", "#", "%3A", "{x}", "{}", "\\0", " "] {
        let key = |text: &str| Key::new(text).unwrap();
        let one = Address::new(DoorKind::Http, &Scope::principal("a"), &key(&format!("b{delimiter}K")));
        let other = Address::new(DoorKind::Http, &Scope::principal(format!("a{delimiter}b")), &key("K"));
        let third = Address::new(DoorKind::Http, &Scope::principal("b").in_tenant("a"), &key("K"));
        assert!(one != other && other != third && one != third, "{delimiter:?}");
    }
}

#[tokio::test]
async fn bug_036_no_key_is_invented() {
    let unkeyed = || Request::post("/orders").body(Full::from("same")).unwrap();
    let door = door();
    for runs in 1..=2 {
        let answer = door.send(unkeyed()).await;
        assert_eq!((answer.is_replay(), door.runs()), (false, runs));
    }
    let strict = Door::answering(policy().required(), || status(201, "made"));
    let refused = strict.send(unkeyed()).await;
    assert_eq!((refused.status, refused.code().as_str(), strict.runs()), (400, "missing-key", 0));
}
