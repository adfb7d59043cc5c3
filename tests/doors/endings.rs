//! How a run ended, and what its retry gets of it.

use serde_json::json;

use crate::{
    caller::{Call, End, Page, Told},
    server::Setting,
};

pub(crate) async fn a_transient_failure_frees_the_key(setting: Setting) {
    let server = setting.start().await;
    let call = Call::to(Page::Unavailable, "k");
    for runs in 1..=3 {
        assert_eq!(server.told(call.clone()).await.ran().end, End::Unavailable);
        assert_eq!(server.runs().await, runs);
    }
    // Free, also for another call.
    server.told(Call::to(Page::Order { ms: 0 }, "k")).await.ran();
}

pub(crate) async fn a_failure_that_is_kept_replays(setting: Setting) {
    let server = setting.start().await;
    let call = Call::to(Page::Decline, "k");
    let first = server.told(call.clone()).await.ran();
    let replay = server.told(call).await.replayed();
    assert_eq!((first.end, replay.end), (End::Declined, End::Declined));
    assert_eq!(replay.body, first.body);
    // Of gRPC it names the run, the marker apart.
    assert_eq!(replay.trailers.get("x-run-bin"), first.trailers.get("x-run-bin"));
    assert_eq!(server.runs().await, 1);
}

pub(crate) async fn a_panic_is_answered_and_frees_the_key(setting: Setting) {
    let mut server = setting.start().await;
    for runs in 1..=2 {
        assert_eq!(server.told(Call::to(Page::Panic, "k")).await, Told::Broken);
        assert_eq!(server.runs().await, runs);
    }
    assert!(server.is_alive());
    server.told(Call::to(Page::Order { ms: 0 }, "k")).await.ran();
}

pub(crate) async fn fields_are_replayed_or_withheld(setting: Setting) {
    let server = setting.start().await;
    let first = server.told(Call::to(Page::Fields, "k")).await.ran();
    let replay = server.told(Call::to(Page::Fields, "k")).await.replayed();
    for name in server.caller.replayed_fields() {
        assert!(!first.values(name).is_empty(), "{name}");
        assert_eq!(replay.values(name), first.values(name), "{name}");
    }
    assert_eq!(replay.values("x-multi"), [b"one", b"two"]);
    assert!(!first.values("set-cookie").is_empty(), "the first caller's own");
    assert_eq!(replay.values("set-cookie"), [&b""[..]; 0], "and nobody else's");
}

pub(crate) async fn trailers_are_replayed(setting: Setting) {
    let server = setting.start().await;
    let first = server.told(Call::to(Page::Trailers, "k")).await.ran();
    let replay = server.told(Call::to(Page::Trailers, "k")).await.replayed();
    assert!(first.trailers.contains_key("x-checksum"), "{first:?}");
    assert_eq!((replay.trailers, replay.body), (first.trailers, first.body));
    assert_eq!(server.runs().await, 1);
}

pub(crate) async fn an_answer_too_long_to_keep_is_done_and_not_repeated(setting: Setting) {
    let setting = setting.with_config(json!({ "max_store": 1_000 }));
    let server = setting.start().await;
    let call = Call::to(Page::Large { bytes: 5_000 }, "k");
    assert!(server.told(call.clone()).await.ran().body.len() >= 5_000);
    for _ in 0..2 {
        assert_eq!(server.told_at_last(call.clone()).await, Told::NotReplayable);
    }
    assert_eq!(server.runs().await, 1);
}
