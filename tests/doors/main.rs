//! One list of scenarios through every door and on every store, over real sockets, against a server in a process of its
//! own: it may be killed, told to end, or left without its store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod crash;
mod drain;
mod duplicates;
mod h2_cases;
mod hammer;
mod hostile;
mod http2;
mod leaving;
mod outage;
mod server;
mod skew;
mod upgrade;

/// Makes a test of each scenario for each door and store. The stores that outlive a process are named `durable`; what is
/// `hyper` needs what only hyper's servers have: trailers, and in HTTP/2 the extended CONNECT and
/// a goodbye before the end.
macro_rules! through_every_door {
    (
        any store: $($any:ident::$any_scenario:ident),+;
        durable: $($durable:ident::$durable_scenario:ident),+;
        hyper: $($hyper:ident::$hyper_scenario:ident),+;
        durable hyper: $($both:ident::$both_scenario:ident),+ $(;)?
    ) => {
        $(through_every_door!(@scenario $any::$any_scenario: tower_memory, axum_memory, actix_memory, tower_sqlite, axum_sqlite, actix_sqlite);)+
        $(through_every_door!(@scenario $durable::$durable_scenario: tower_sqlite, axum_sqlite, actix_sqlite);)+
        $(through_every_door!(@scenario $hyper::$hyper_scenario: tower_memory, axum_memory, tower_sqlite, axum_sqlite);)+
        $(through_every_door!(@scenario $both::$both_scenario: tower_sqlite, axum_sqlite);)+
    };
    (@scenario $module:ident::$scenario:ident: $($setting:ident),+) => {
        mod $scenario {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $setting() {
                    crate::$module::$scenario(crate::server::Setting::$setting()).await;
                }
            )+
        }
    };
}

through_every_door! {
    any store:
        duplicates::copies_of_a_run_longer_than_its_lease_run_once,
        duplicates::an_upgrade_header_changes_nothing,
        h2_cases::cases_of_the_default_door,
        h2_cases::cases_of_configured_doors,
        h2_cases::cases_of_streams,
        h2_cases::an_empty_answer_says_of_its_length_what_the_framework_says,
        hammer::keys_run_once_while_clients_vanish,
        hostile::malformed_requests_claim_nothing,
        http2::streams_are_guarded_like_requests,
        leaving::a_streamed_answer_left_half_way_replays_whole,
        outage::a_store_that_is_gone_lets_nothing_keyed_run,
        outage::a_completion_lands_once_the_store_is_back,
        upgrade::a_keyed_handshake_passes,
        upgrade::a_keyed_post_that_switches_protocols_frees_its_key;
    durable:
        crash::a_killed_process_leaves_at_most_one_outcome,
        drain::a_run_ends_before_the_process_does,
        drain::a_run_whose_client_left_ends_before_the_process_does,
        hostile::a_corrupt_record_is_neither_run_nor_replayed;
    hyper:
        http2::trailers_are_replayed,
        upgrade::a_keyed_extended_connect_passes;
    durable hyper:
        leaving::a_run_is_answered_after_goaway;
}
