//! The suite about broken lines is worth what it refuses: stores that are wrong in one way each.
//!
//! Their server is a toy: calls lie on a desk, and only the numbers of their tickets go over the line. That is enough
//! for everything that can happen to a line to happen to a call.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod desk;
mod flaw;
mod proxy;

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use client::Client;
use desk::Desk;
use flaw::Flaw;
use idempotency_store_contract::{
    wire::{WireLaw, Wired, prove},
    wire_faults,
};

#[derive(Debug, Default)]
struct Toy {
    flaw: Option<Flaw>,
    desk: OnceLock<Arc<Desk>>,
}

impl Wired for Toy {
    type Store = Client;

    fn server(&self) -> Option<String> {
        let desk = self.desk.get_or_init(Arc::default);
        Some(desk::serve(desk))
    }

    async fn open(&self, address: &str) -> Client {
        let desk = self.desk.get().expect("a server is asked for before a store");
        Client::new(address, Arc::clone(desk), self.flaw)
    }

    fn recovery(&self) -> Duration {
        // A flaw that never ends is found at the end of it.
        Duration::from_secs(if self.flaw.is_none_or(|flaw| flaw == Flaw::TriesAgain) { 10 } else { 3 })
    }
}

/// A store without a flaw, which leaves trying again to others, keeps every law.
mod without_a_flaw {
    use super::*;

    wire_faults!(Toy::default());
}

/// So does one that tries again by itself.
mod trying_again {
    use super::*;

    wire_faults!(Toy { flaw: Some(Flaw::TriesAgain), ..Toy::default() });
}

/// The flaw breaks the law, and is found by what the law wants in these words. Where chance decides which wrong answer
/// comes first, there are none.
fn breaks(flaw: Flaw, law: &str, wants: &str) {
    let toy = Toy { flaw: Some(flaw), ..Toy::default() };
    let violation = prove(&toy, law).expect_err("the law finds the flaw");
    assert!(violation.wants.contains(wants), "{violation}");
}

macro_rules! flaws {
    ($($test:ident: $flaw:ident breaks $law:ident, which wants $wants:literal;)+) => {
        $(
            #[test]
            fn $test() {
                breaks(Flaw::$flaw, stringify!($law), $wants);
            }
        )+

        #[test]
        fn every_law_has_found_a_flaw() {
            let found = BTreeSet::from([$(stringify!($law)),+]);
            let laws: BTreeSet<_> = WireLaw::<Toy>::ALL.iter().map(|law| law.name).collect();
            assert_eq!(found, laws);
        }
    };
}

flaws! {
    failed_ending_is_called_settled: EndsInAnyCase breaks request_that_never_arrived_wrote_nothing,
        which wants "what a store says it did is on the server";
    lost_reply_is_called_unwritten: CallsFailuresUndone breaks lost_reply_leaves_the_fate_unknown,
        which wants "a write that was done is not called undone";
    claim_is_tried_again_by_another: TriesAgainAsAnother breaks lost_reply_leaves_the_fate_unknown,
        which wants "nobody meets a write of their own as somebody else's";
    half_a_reply_is_believed: BelievesHalfAReply breaks reply_cut_short_is_no_answer,
        which wants "a grant is the one on the server";
    time_out_is_called_unwritten: CallsFailuresUndone breaks late_request_is_not_called_unwritten,
        which wants "a write that was done is not called undone";
    lost_grant_is_called_unwritten: CallsFailuresUndone breaks lost_grant_locks_no_key,
        which wants "a key nobody runs is free long before its lease lapses";
    bid_cannot_be_withdrawn: ReleasesByTheFence breaks abandoned_claim_locks_no_key,
        which wants "a key nobody runs is free long before its lease lapses";
    second_completion_is_fenced: CompletesOnce breaks lost_completion_is_stored_in_the_end,
        which wants "a completion is tried until it is stored";
    renewal_renews_nothing: RenewsNothing breaks completion_is_tried_again_under_a_renewed_lease,
        which wants "the lease is renewed while its completion is tried";
    silence_blocks_a_thread: BlocksInSilence breaks silent_server_holds_no_caller,
        which wants "a call ends within the engine's time for it";
    broken_connection_is_kept: KeepsBrokenConnections breaks line_that_is_whole_again_is_used,
        which wants "a call over a whole line is answered";
    silent_connection_is_kept: KeepsSilentConnections breaks silent_connection_is_left,
        which wants "a call over a whole line is answered";
    slow_line_is_given_up: HasNoPatience breaks slow_line_changes_no_verdict,
        which wants "a call over a whole line is answered";
    dropped_call_leaves_its_answer: ReusesDroppedConnections breaks dropped_calls_disturb_no_other,
        which wants "";
    dropped_call_leaves_its_transaction: LeavesTransactionsOpen breaks dropped_calls_disturb_no_other,
        which wants "a call over a whole line is answered";
}
