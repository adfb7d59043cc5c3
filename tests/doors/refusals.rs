//! What a door asks of a call before anything runs: whose it is, which one, and how long.

use serde_json::json;

use crate::{
    caller::{Call, Page, Told},
    server::Setting,
};

const ORDER: Page = Page::Order { ms: 0 };

pub(crate) async fn a_key_that_is_required_is_missed(setting: Setting) {
    let setting = setting.with_config(json!({ "require_key": true }));
    let server = setting.start().await;
    assert_eq!(server.told(Call::unkeyed(ORDER)).await, Told::MissingKey);
    assert_eq!(server.orders().await, 0);
    server.told(Call::to(ORDER, "k")).await.ran();
    assert_eq!(server.orders().await, 1);
}

pub(crate) async fn without_a_key_nothing_is_recognised(setting: Setting) {
    let server = setting.start().await;
    for orders in 1..=2 {
        server.told(Call::unkeyed(ORDER)).await.ran();
        assert_eq!(server.orders().await, orders);
    }
}

pub(crate) async fn keys_that_are_none_are_refused(setting: Setting) {
    let server = setting.start().await;
    let longest = "a".repeat(255);
    for keys in [
        vec![&b""[..]],
        vec![b"\"open"],
        vec![b"\"\""],
        vec![b"a b"],
        vec![b"a, b"],
        vec![format!("{longest}a").as_bytes()],
        vec!["schl\u{fc}ssel".as_bytes()],
        vec![b"\xff"],
        vec![b"one", b"two"],
    ] {
        let said = format!("{keys:?}");
        let call = Call::with_keys(ORDER, keys.into_iter().map(<[u8]>::to_vec));
        assert_eq!(server.told(call).await, Told::InvalidKey, "{said}");
    }
    assert_eq!(server.orders().await, 0);
    server.told(Call::to(ORDER, &longest)).await.ran();
    let quoted = format!("\"{longest}\"");
    server.told(Call::to(ORDER, &quoted)).await.replayed();
    assert_eq!(server.orders().await, 1);
}

pub(crate) async fn callers_have_keys_of_their_own(setting: Setting) {
    let setting = setting.with_config(json!({ "scope_header": "x-tenant" }));
    let server = setting.start().await;
    let of = |tenant| Call::to(ORDER, "k").with("x-tenant", tenant);
    let [anna, bert] = [server.told(of("anna")).await.ran(), server.told(of("bert")).await.ran()];
    assert_ne!(anna.body, bert.body);
    assert_eq!(server.told(of("anna")).await.replayed().body, anna.body);
    assert_eq!(server.told(of("bert")).await.replayed().body, bert.body);
    assert_eq!(server.told(Call::to(ORDER, "k")).await, Told::NoPrincipal);
    assert_eq!(server.orders().await, 2);
}

pub(crate) async fn without_a_scope_credentials_are_bound(setting: Setting) {
    let server = setting.start().await;
    let of = |token| Call::to(ORDER, "k").with("authorization", token);
    server.told(of("Bearer anna")).await.ran();
    // Nothing else is compared: what the first caller said is nobody's to find out.
    for other in [of("Bearer bert"), of("Bearer bert").saying("coffee"), Call::to(ORDER, "k")] {
        assert_eq!(server.told(other).await, Told::OtherCredentials);
    }
    server.told(of("Bearer anna")).await.replayed();
    assert_eq!(server.orders().await, 1);
}

pub(crate) async fn a_call_that_is_too_long_claims_nothing(setting: Setting) {
    let setting = setting.with_config(json!({ "max_body": 100 }));
    let server = setting.start().await;
    let long = Call::to(ORDER, "k").saying("tea ".repeat(100));
    assert_eq!(server.told(long).await, Told::TooLarge);
    assert_eq!(server.orders().await, 0);
    server.told(Call::to(ORDER, "k")).await.ran();
    assert_eq!(server.orders().await, 1);
}
