//! A process that is told to end while it runs something.

use futures_util::FutureExt;

use crate::{
    caller::{Call, End, Page},
    server::Setting,
};

/// Longer than it takes to notice the order and to send a signal.
const ORDER: Page = Page::Order { ms: 1_500 };

pub(crate) async fn a_run_ends_before_the_process_does(setting: Setting) {
    let server = setting.start().await;
    let caller = server.caller.clone();
    let call = tokio::spawn(async move { caller.send(Call::to(ORDER, "order")).await });
    server.placed(1).await;
    server.terminate().await;
    let first = call.await.unwrap().ran();
    assert_eq!(first.end, End::Well);
    assert_eq!(server.ended().await.code(), Some(0));
    assert_eq!(setting.stderr(), "");
    let server = setting.start().await;
    assert_eq!(server.told(Call::to(ORDER, "order")).await.replayed().body, first.body);
}

pub(crate) async fn a_run_whose_client_left_ends_before_the_process_does(setting: Setting) {
    let server = setting.start().await;
    let mut call = Box::pin(server.told(Call::to(ORDER, "order")));
    tokio::select! {
        told = &mut call => panic!("the order is still being placed: {told:?}"),
        () = server.placed(1) => {}
    }
    assert!((&mut call).now_or_never().is_none());
    drop(call);
    server.terminate().await;
    assert_eq!(server.ended().await.code(), Some(0));
    assert_eq!(setting.stderr(), "");
    let server = setting.start().await;
    server.told(Call::to(ORDER, "order")).await.replayed();
    assert_eq!(server.orders().await, 1);
}
