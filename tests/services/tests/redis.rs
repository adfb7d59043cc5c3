//! A Redis of a test's own: killed and restarted, with and without persistence.

use std::net::TcpStream;

use idempotency_services::{Persistence, RedisServer};

/// What a Redis answers to `GET` after it was told a value and killed.
fn after_a_kill(persistence: Persistence) -> Option<String> {
    let mut server = RedisServer::start(persistence, &["--maxmemory", "64mb"])?;
    assert_eq!(server.ask("CONFIG GET maxmemory"), "*2\r\n$9\r\nmaxmemory\r\n$8\r\n67108864");
    assert_eq!(server.ask("SET kept 7"), "+OK");
    let url = server.url();
    server.kill();
    assert!(TcpStream::connect(server.address()).is_err(), "a killed server takes no connection");
    server.restart();
    assert_eq!(server.url(), url, "it comes back where it was");
    Some(server.ask("GET kept"))
}

#[test]
fn without_persistence_everything_is_forgotten() {
    let Some(answer) = after_a_kill(Persistence::None) else { return };
    assert_eq!(answer, "$-1");
}

#[test]
fn with_persistence_what_was_acknowledged_survives() {
    let Some(answer) = after_a_kill(Persistence::EachWrite) else { return };
    assert_eq!(answer, "$1\r\n7");
}

#[test]
fn a_server_that_is_dropped_is_gone() {
    let Some(server) = RedisServer::start(Persistence::None, &[]) else { return };
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
