//! A result that is too long to be kept, on any store.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use idempotency_agent::{EffectError, Ledger, LedgerError, Outcome, Policy};
use idempotency_core::LedgerStore;

/// How many effects follow: more than a head keeps, so that the first is on a sheet in the end.
const OTHERS: u32 = 20;

pub(crate) async fn what_is_too_long_is_not_kept_and_stays_done<S: LedgerStore>(store: &Arc<S>) {
    let policy = Policy::new().max_result_bytes(1_000);
    let ledger = Ledger::builder(Arc::clone(store)).policy(policy).build().unwrap();
    let times = AtomicU32::new(0);
    let times = &times;
    let ask = |length: usize| {
        ledger.effect("sizes", "export").identity(&length).execute(move |_| async move {
            times.fetch_add(1, Ordering::SeqCst);
            Ok::<_, EffectError>("x".repeat(length - 2))
        })
    };
    assert!(matches!(ask(1_000).await.unwrap(), Outcome::Executed { late: false, .. }));
    assert!(matches!(ask(1_001).await.unwrap(), Outcome::Executed { late: false, .. }));
    let is_not_kept = |asked| matches!(asked, Err(LedgerError::ResultNotKept { bytes: 1_001 }));
    assert!(is_not_kept(ask(1_001).await));
    for other in 0..OTHERS {
        let other = ledger.effect("sizes", "tag").identity(&other);
        assert!(other.execute(|_| async { Ok::<_, EffectError>(()) }).await.unwrap().is_done());
    }
    assert!(is_not_kept(ask(1_001).await));
    assert!(matches!(ask(1_000).await.unwrap(), Outcome::Replayed(value) if value.len() == 998));
    assert_eq!(times.load(Ordering::SeqCst), 2);
}
