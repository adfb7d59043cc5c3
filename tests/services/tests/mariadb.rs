//! A MariaDB of a test's own: killed and restarted.

use std::net::TcpStream;

use idempotency_services::MariaDbServer;

#[test]
fn what_was_acknowledged_survives_a_crash() {
    let Some(mut server) = MariaDbServer::start(&["--max-connections=17"]) else { return };
    assert_eq!(server.ask("SELECT @@max_connections"), "17");
    server.ask("CREATE TABLE kept (number int) ENGINE = InnoDB; INSERT INTO kept VALUES (7)");
    let url = server.url();
    server.kill();
    assert!(TcpStream::connect(server.address()).is_err(), "a killed server takes no connection");
    server.restart();
    assert_eq!(server.url(), url, "it comes back where it was");
    assert_eq!(server.ask("SELECT number FROM kept"), "7");
    let (address, folder) = (server.address(), server.ask("SELECT @@datadir"));
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert!(!std::path::Path::new(&folder).exists(), "nothing is left of it");
}
