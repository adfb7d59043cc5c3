//! One list of scenarios through every door and on every store, over real sockets, against a server in a process of its
//! own: it may be killed, told to end, or left without its store. A test is named by its door, its store and its scenario.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod caller;
mod client;
mod crash;
mod drain;
mod duplicates;
mod endings;
mod foreign;
mod h2_cases;
mod hammer;
mod hostile;
mod http2;
mod leaving;
mod outage;
mod refusals;
mod server;
mod skew;
mod upgrade;

/// Makes a test of each scenario in a setting, if there is one.
macro_rules! tests {
    ($setting:expr; $($module:ident::$scenario:ident),+ $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                let Some(setting) = Option::from($setting) else { return };
                crate::$module::$scenario(setting).await;
            }
        )+
    };
}

/// What every door does on every store.
macro_rules! any_door {
    ($setting:expr) => {
        tests! {
            $setting;
            duplicates::a_copy_gets_the_first_answer,
            duplicates::parallel_copies_run_once,
            duplicates::copies_that_do_not_wait_run_once,
            duplicates::copies_of_a_run_longer_than_its_lease_run_once,
            duplicates::another_payload_is_a_mismatch_even_in_flight,
            duplicates::another_page_is_a_mismatch,
            duplicates::an_expired_key_is_new,
            refusals::a_key_that_is_required_is_missed,
            refusals::without_a_key_nothing_is_recognised,
            refusals::keys_that_are_none_are_refused,
            refusals::callers_have_keys_of_their_own,
            refusals::without_a_scope_credentials_are_bound,
            refusals::a_call_that_is_too_long_claims_nothing,
            endings::a_transient_failure_frees_the_key,
            endings::a_failure_that_is_kept_replays,
            endings::a_panic_is_answered_and_frees_the_key,
            endings::fields_are_replayed_or_withheld,
            endings::an_answer_too_long_to_keep_is_done_and_not_repeated,
            leaving::a_run_whose_caller_left_goes_on_and_replays,
            leaving::a_deadline_frees_no_key,
            outage::a_store_that_is_gone_lets_nothing_keyed_run,
            outage::a_completion_lands_once_the_store_is_back,
        }
    };
}

/// And under load. Not on DynamoDB, whose emulator takes one call after the other.
macro_rules! door_under_load {
    ($setting:expr) => {
        tests! { $setting; hammer::keys_run_once_while_clients_vanish }
    };
}

/// And what it does where the store outlives its process.
macro_rules! any_durable_door {
    ($setting:expr) => {
        any_door!($setting);
        tests! {
            $setting;
            duplicates::two_servers_on_one_store_run_once,
            crash::a_run_that_was_killed_lapses_and_its_retry_runs,
            drain::a_run_ends_before_the_process_does,
            drain::a_run_whose_client_left_ends_before_the_process_does,
        }
    };
}

/// And what is asked of the store's own file.
macro_rules! any_door_on_sqlite {
    ($setting:expr) => {
        any_durable_door!($setting);
        tests! {
            $setting;
            crash::a_killed_process_leaves_at_most_one_outcome,
            hostile::a_corrupt_record_is_neither_run_nor_replayed,
        }
    };
}

/// What has no word in gRPC.
macro_rules! http_door {
    ($setting:expr) => {
        tests! {
            $setting;
            duplicates::an_upgrade_header_changes_nothing,
            h2_cases::cases_of_the_default_door,
            h2_cases::cases_of_configured_doors,
            h2_cases::cases_of_streams,
            h2_cases::an_empty_answer_says_of_its_length_what_the_framework_says,
            hostile::malformed_requests_claim_nothing,
            http2::streams_are_guarded_like_requests,
            leaving::a_streamed_answer_left_half_way_replays_whole,
            upgrade::a_keyed_handshake_passes,
            upgrade::a_keyed_post_that_switches_protocols_frees_its_key,
        }
    };
}

/// What actix's server does not have: trailers.
macro_rules! door_with_trailers {
    ($setting:expr) => {
        tests! { $setting; endings::trailers_are_replayed }
    };
}

/// What only hyper's servers have of HTTP/2: the extended CONNECT.
macro_rules! hyper_door {
    ($setting:expr) => {
        tests! { $setting; upgrade::a_keyed_extended_connect_passes }
    };
}

/// And a goodbye before the end.
macro_rules! durable_hyper_door {
    ($setting:expr) => {
        tests! { $setting; leaving::a_run_is_answered_after_goaway }
    };
}

mod tower {
    mod memory {
        any_door!(crate::server::Setting::memory("tower"));
        door_under_load!(crate::server::Setting::memory("tower"));
        http_door!(crate::server::Setting::memory("tower"));
        door_with_trailers!(crate::server::Setting::memory("tower"));
        hyper_door!(crate::server::Setting::memory("tower"));
    }
    mod sqlite {
        any_door_on_sqlite!(crate::server::Setting::sqlite("tower"));
        door_under_load!(crate::server::Setting::sqlite("tower"));
        http_door!(crate::server::Setting::sqlite("tower"));
        door_with_trailers!(crate::server::Setting::sqlite("tower"));
        hyper_door!(crate::server::Setting::sqlite("tower"));
        durable_hyper_door!(crate::server::Setting::sqlite("tower"));
    }
}

mod axum {
    mod memory {
        any_door!(crate::server::Setting::memory("axum"));
        door_under_load!(crate::server::Setting::memory("axum"));
        http_door!(crate::server::Setting::memory("axum"));
        door_with_trailers!(crate::server::Setting::memory("axum"));
        hyper_door!(crate::server::Setting::memory("axum"));
    }
    mod sqlite {
        any_door_on_sqlite!(crate::server::Setting::sqlite("axum"));
        door_under_load!(crate::server::Setting::sqlite("axum"));
        http_door!(crate::server::Setting::sqlite("axum"));
        door_with_trailers!(crate::server::Setting::sqlite("axum"));
        hyper_door!(crate::server::Setting::sqlite("axum"));
        durable_hyper_door!(crate::server::Setting::sqlite("axum"));
    }
}

mod actix {
    mod memory {
        any_door!(crate::server::Setting::memory("actix"));
        door_under_load!(crate::server::Setting::memory("actix"));
        http_door!(crate::server::Setting::memory("actix"));
    }
    mod sqlite {
        any_door_on_sqlite!(crate::server::Setting::sqlite("actix"));
        door_under_load!(crate::server::Setting::sqlite("actix"));
        http_door!(crate::server::Setting::sqlite("actix"));
    }
}

/// The store behind the network makes no difference to a door that only passes it on, but that it is slower: one door is
/// enough for all of them.
mod tonic {
    mod memory {
        any_door!(crate::server::Setting::memory("tonic"));
        door_under_load!(crate::server::Setting::memory("tonic"));
        door_with_trailers!(crate::server::Setting::memory("tonic"));
    }
    mod sqlite {
        any_door_on_sqlite!(crate::server::Setting::sqlite("tonic"));
        door_under_load!(crate::server::Setting::sqlite("tonic"));
        door_with_trailers!(crate::server::Setting::sqlite("tonic"));
    }
    mod postgres {
        any_durable_door!(crate::server::Setting::on("tonic", crate::server::Backend::Postgres));
        door_under_load!(crate::server::Setting::on("tonic", crate::server::Backend::Postgres));
    }
    mod mysql {
        any_durable_door!(crate::server::Setting::on("tonic", crate::server::Backend::MySql));
        door_under_load!(crate::server::Setting::on("tonic", crate::server::Backend::MySql));
    }
    mod redis {
        any_durable_door!(crate::server::Setting::on("tonic", crate::server::Backend::Redis));
        door_under_load!(crate::server::Setting::on("tonic", crate::server::Backend::Redis));
    }
    mod redis_cluster {
        any_durable_door!(crate::server::Setting::on("tonic", crate::server::Backend::RedisCluster));
        door_under_load!(crate::server::Setting::on("tonic", crate::server::Backend::RedisCluster));
    }
    mod dynamodb {
        any_durable_door!(crate::server::Setting::on("tonic", crate::server::Backend::DynamoDb));
    }
}
