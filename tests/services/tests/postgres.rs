//! A PostgreSQL of a test's own: killed, restarted, followed, promoted.

use std::net::TcpStream;

use idempotency_services::{PostgresServer, Replication};

const WRITE: &str = "CREATE TABLE IF NOT EXISTS kept (number int); INSERT INTO kept VALUES (7)";
/// How this server's commits wait for the one that follows it.
const HOW: &str = "SELECT sync_state FROM pg_stat_replication";
const READ: &str = "SELECT count(*) FROM kept";

#[test]
fn what_was_acknowledged_survives_a_crash() {
    let Some(mut server) = PostgresServer::start(&["max_connections=17"]) else { return };
    assert_eq!(server.ask("SHOW max_connections"), "17");
    server.ask(WRITE);
    let url = server.url();
    server.kill();
    assert!(TcpStream::connect(server.address()).is_err(), "a killed server takes no connection");
    server.restart();
    assert_eq!(server.url(), url, "it comes back where it was");
    assert_eq!(server.ask(READ), "1");
}

#[test]
fn a_synchronous_standby_has_what_was_acknowledged() {
    let Some(mut primary) = PostgresServer::start(&[]) else { return };
    let standby = primary.standby(Replication::Synchronous);
    assert_eq!(standby.ask("SELECT pg_is_in_recovery()"), "t");
    assert_eq!(primary.ask(HOW), "sync");
    primary.ask(WRITE);
    primary.kill();
    standby.promote();
    assert_eq!(standby.ask(READ), "1");
    standby.ask(WRITE);
    assert_eq!(standby.ask(READ), "2", "a promoted standby takes writes");
}

/// What a follower had not got yet is lost with the server that acknowledged it.
#[test]
fn an_asynchronous_standby_may_lack_it() {
    let Some(mut primary) = PostgresServer::start(&[]) else { return };
    let mut standby = primary.standby(Replication::Asynchronous);
    assert_eq!(primary.ask(HOW), "async");
    primary.ask(WRITE);
    let has_it = || standby.ask("SELECT to_regclass('kept') IS NOT NULL") == "t";
    while !has_it() {}
    standby.kill();
    primary.ask(WRITE);
    assert_eq!(primary.ask(READ), "2");
    primary.kill();
    standby.restart();
    standby.promote();
    assert_eq!(standby.ask(READ), "1");
}

#[test]
fn nothing_is_left_of_a_server_that_is_dropped() {
    let Some(server) = PostgresServer::start(&[]) else { return };
    let (address, folder) = (server.address(), server.ask("SHOW unix_socket_directories"));
    assert!(std::path::Path::new(&folder).is_dir());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert!(!std::path::Path::new(&folder).exists());
}
