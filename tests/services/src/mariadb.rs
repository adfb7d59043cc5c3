//! A MariaDB of a test's own.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    DATABASE,
    program::{self, Home, run},
    running::{Running, on_free_port},
};

/// A MariaDB of a test's own, which the test may kill. It is gone when this is dropped.
///
/// Its database, its user and that one's password bear the name that `scripts/services` gives to the shared one's.
#[derive(Debug)]
pub struct MariaDbServer {
    process: Option<Running>,
    port: u16,
    settings: Vec<String>,
    programs: Programs,
    home: Home,
}

#[derive(Debug)]
struct Programs {
    mariadbd: PathBuf,
    mariadb: PathBuf,
}

impl MariaDbServer {
    /// Starts one, with `settings` such as `--max-connections=50` besides. `None`, said aloud, when MariaDB is not
    /// installed.
    ///
    /// # Panics
    /// When MariaDB is not installed and `IDEMPOTENCY_REQUIRE_STORES` is set, or it does not start.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let [install, mariadbd, mariadb] = program::find(["mariadb-install-db", "mariadbd", "mariadb"])?;
        let (programs, home) = (Programs { mariadbd, mariadb }, Home::of("mysql"));
        let mut init = home.command(&install);
        init.arg("--no-defaults").arg(format!("--datadir={}", home.path().join("data").display()));
        run(init.args(["--auth-root-authentication-method=normal", "--skip-test-db"]));
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let (port, process) =
            on_free_port(|port| Ok((port, Self::process(&programs, &home, &settings, port)?)));
        let server = Self { process: Some(process), port, settings, programs, home };
        run(&mut client(
            &server.programs,
            &server.home,
            &format!(
                "CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; CREATE USER {DATABASE} IDENTIFIED BY '{DATABASE}'; \
                 GRANT ALL ON *.* TO {DATABASE}"
            ),
        ));
        Some(server)
    }

    /// Ends it at once, whatever it is doing. What it acknowledged is in its log, and is there again after a
    /// [restart](Self::restart).
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again where it was, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn restart(&mut self) {
        self.kill();
        let begun = Self::process(&self.programs, &self.home, &self.settings, self.port);
        self.process = Some(begun.unwrap_or_else(|said| panic!("MariaDB does not start again: {said}")));
    }

    /// Where it is, as stores want to know it.
    pub fn url(&self) -> String {
        format!("mysql://{DATABASE}:{DATABASE}@{}/{DATABASE}", self.address())
    }

    /// Where it is, as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it answers to a statement in its database: columns separated by tabs, a row a line.
    ///
    /// # Panics
    /// When the statement fails, or the server is not there.
    pub fn ask(&self, statement: &str) -> String {
        let mut ask = client(&self.programs, &self.home, statement);
        run(ask.arg(DATABASE)).trim_end().to_owned()
    }

    fn process(programs: &Programs, home: &Home, settings: &[String], port: u16) -> Result<Running, String> {
        let place = |name| home.path().join(name).display().to_string();
        let mut command = home.command(&programs.mariadbd);
        command.arg("--no-defaults").args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
        command.arg(format!("--port={port}")).arg(format!("--datadir={}", place("data")));
        command.arg(format!("--socket={}", place("socket"))).arg(format!("--pid-file={}", place("pid")));
        // Who kills a process loses nothing that the operating system has.
        command.arg("--innodb-flush-log-at-trx-commit=2").args(settings);
        Running::start(&mut command, home.path().join("log"), || {
            let mut ask = client(programs, home, "SELECT 1");
            ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        })
    }
}

/// The client as root, by the socket that is the server's own.
fn client(programs: &Programs, home: &Home, statement: &str) -> Command {
    let mut command = Command::new(&programs.mariadb);
    command.arg("--no-defaults").arg(format!("--socket={}", home.path().join("socket").display()));
    command.args(["-uroot", "--batch", "--skip-column-names", "-e", statement]);
    command
}
