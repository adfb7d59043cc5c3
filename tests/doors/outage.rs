//! A store that goes away and comes back.

use std::{fs, time::Duration};

use crate::{
    caller::{Call, End, Page, Told},
    server::Setting,
};

pub(crate) async fn a_store_that_is_gone_lets_nothing_keyed_run(setting: Setting) {
    let server = setting.start().await;
    let call = Call::to(Page::Count { ms: 0 }, "key");
    fs::write(setting.outage(), "").unwrap();
    let down = Told::Down { retry_after: Duration::from_secs(1) };
    assert_eq!(server.told(call.clone()).await, down);
    assert_eq!(server.runs().await, 0);
    server.told(Call::unkeyed(Page::Count { ms: 0 })).await.ran();
    assert_eq!(server.runs().await, 1);
    fs::remove_file(setting.outage()).unwrap();
    server.told(call).await.ran();
    assert_eq!(server.runs().await, 2);
}

pub(crate) async fn a_completion_lands_once_the_store_is_back(setting: Setting) {
    let server = setting.start().await;
    let order = Call::to(Page::Held, "order");
    setting.hold();
    let caller = server.caller.clone();
    let call = tokio::spawn({
        let order = order.clone();
        async move { caller.send(order).await }
    });
    server.placed(1).await;
    fs::write(setting.outage(), "").unwrap();
    setting.let_go();
    let first = call.await.unwrap().ran();
    assert_eq!(first.end, End::Well);
    assert!(matches!(server.told(order.clone()).await, Told::Down { .. }));
    fs::remove_file(setting.outage()).unwrap();
    assert_eq!(server.told_at_last(order).await.replayed().body, first.body);
    assert_eq!(server.orders().await, 1);
}
