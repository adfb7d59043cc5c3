//! A PostgreSQL of a test's own, and one that follows it.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    DATABASE,
    program::{self, Home, run},
    running::{Running, on_free_port, until},
};

/// A PostgreSQL of a test's own, which the test may kill. It is gone when this is dropped.
///
/// Its database bears the name that `scripts/services` gives to the shared one's, and everybody may do everything in it.
#[derive(Debug)]
pub struct PostgresServer {
    process: Option<Running>,
    port: u16,
    settings: Vec<String>,
    programs: Programs,
    home: Home,
}

/// When a commit counts that another server follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// When the follower has it, too.
    Synchronous,
    /// At once; the follower gets it soon.
    Asynchronous,
}

#[derive(Debug, Clone)]
struct Programs {
    initdb: PathBuf,
    postgres: PathBuf,
    pg_ctl: PathBuf,
    pg_basebackup: PathBuf,
    psql: PathBuf,
}

impl PostgresServer {
    /// Starts one, with `settings` such as `max_connections=50` besides. `None`, said aloud, when PostgreSQL is not
    /// installed.
    ///
    /// # Panics
    /// When PostgreSQL is not installed and `IDEMPOTENCY_REQUIRE_STORES` is set, or it does not start.
    pub fn start(settings: &[&str]) -> Option<Self> {
        let found = program::find(["initdb", "postgres", "pg_ctl", "pg_basebackup", "psql"])?;
        let [initdb, postgres, pg_ctl, pg_basebackup, psql] = found;
        let programs = Programs { initdb, postgres, pg_ctl, pg_basebackup, psql };
        let home = Home::of("postgres");
        let mut init = home.command(&programs.initdb);
        init.args([
            "-D",
            "data",
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ]);
        run(&mut init);
        let server =
            Self::begin(programs, home, settings.iter().map(|setting| (*setting).to_owned()).collect());
        server.tell("postgres", &format!("CREATE DATABASE {DATABASE}"));
        Some(server)
    }

    /// Starts a server that follows this one, which goes on. It answers what does not write until it is
    /// [promoted](Self::promote).
    ///
    /// # Panics
    /// When it does not start, or does not follow.
    pub fn standby(&self, replication: Replication) -> Self {
        let home = Home::of("postgres");
        let mut copy = home.command(&self.programs.pg_basebackup);
        let from = format!("host=127.0.0.1 port={} user=postgres", self.port);
        run(copy.args(["-D", "data", "-X", "stream", "-c", "fast", "-R", "--no-sync", "-d", &from]));
        let standby = Self::begin(self.programs.clone(), home, self.settings.clone());
        let follows = match replication {
            Replication::Synchronous => {
                self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'");
                self.ask("SELECT pg_reload_conf()");
                "SELECT bool_or(sync_state = 'sync') FROM pg_stat_replication"
            }
            Replication::Asynchronous => "SELECT bool_or(state = 'streaming') FROM pg_stat_replication",
        };
        until("the standby follows", || self.ask(follows) == "t");
        standby
    }

    /// Makes a server that followed another one its own, and waits until it takes writes.
    ///
    /// # Panics
    /// When it cannot be promoted.
    pub fn promote(&self) {
        run(self.control().args(["promote", "-w", "-s"]));
        until("the standby is promoted", || self.ask("SELECT pg_is_in_recovery()") == "f");
    }

    /// Lets it crash: it finishes nothing, and nobody is told anything. What it acknowledged is in its log, and is
    /// there again after a [restart](Self::restart).
    ///
    /// # Panics
    /// When it cannot be reached.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // The processes of its connections live on for a while if it is killed from without.
            run(self.control().args(["stop", "-m", "immediate", "-s"]));
            process.ended();
        }
    }

    /// Starts it again where it was, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn restart(&mut self) {
        self.kill();
        let begun = Self::process(&self.programs, &self.home, &self.settings, self.port);
        self.process = Some(begun.unwrap_or_else(|said| panic!("PostgreSQL does not start again: {said}")));
    }

    /// Where it is, as stores want to know it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@{}/{DATABASE}", self.address())
    }

    /// Where it is, as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it answers to a statement: columns separated by `|`, a row a line.
    ///
    /// # Panics
    /// When the statement fails, or the server is not there.
    pub fn ask(&self, statement: &str) -> String {
        self.tell(DATABASE, statement)
    }

    fn begin(programs: Programs, home: Home, settings: Vec<String>) -> Self {
        let (port, process) =
            on_free_port(|port| Ok((port, Self::process(&programs, &home, &settings, port)?)));
        Self { process: Some(process), port, settings, programs, home }
    }

    fn process(programs: &Programs, home: &Home, settings: &[String], port: u16) -> Result<Running, String> {
        let mut command = home.command(&programs.postgres);
        command.args(["-D", "data", "-p", &port.to_string(), "-k"]).arg(home.path());
        // Who kills a process loses nothing that the operating system has.
        for setting in ["listen_addresses=127.0.0.1", "fsync=off"] {
            command.args(["-c", setting]);
        }
        for setting in settings {
            command.args(["-c", setting]);
        }
        Running::start(&mut command, home.path().join("log"), || {
            let mut ask = psql(programs, port, "postgres", "SELECT 1");
            ask.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        })
    }

    fn tell(&self, database: &str, statement: &str) -> String {
        run(&mut psql(&self.programs, self.port, database, statement)).trim_end().to_owned()
    }

    fn control(&self) -> Command {
        let mut command = self.home.command(&self.programs.pg_ctl);
        command.args(["-D", "data"]);
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Killed from without it would leave processes behind that still use its folder.
        if let Some(mut process) = self.process.take() {
            let stopped = self.control().args(["stop", "-m", "immediate", "-s"]).status();
            if stopped.is_ok_and(|status| status.success()) {
                process.ended();
            }
        }
    }
}

fn psql(programs: &Programs, port: u16, database: &str, statement: &str) -> Command {
    let mut command = Command::new(&programs.psql);
    command.env("PGCONNECT_TIMEOUT", "5").args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement]);
    command.arg(format!("postgres://postgres@127.0.0.1:{port}/{database}"));
    command
}
