//! A Redis of a test's own.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use crate::{
    program::{self, Home},
    running::{Running, on_free_port},
};

/// A Redis of a test's own, which the test may kill. It is gone when this is dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Option<Running>,
    port: u16,
    persistence: Persistence,
    program: PathBuf,
    settings: Vec<String>,
    home: Home,
}

/// What a Redis still knows after it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing.
    None,
    /// Everything it acknowledged: each write is on the disk before it is answered.
    EachWrite,
}

impl RedisServer {
    /// Starts one, with `settings` such as `["--maxmemory", "8mb"]` besides. `None`, said aloud, when Redis is not
    /// installed.
    ///
    /// # Panics
    /// When Redis is not installed and `IDEMPOTENCY_REQUIRE_STORES` is set, or it does not start.
    pub fn start(persistence: Persistence, settings: &[&str]) -> Option<Self> {
        let [program] = program::find(["redis-server"])?;
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let home = Home::of("redis");
        let (port, process) =
            on_free_port(|port| Ok((port, Self::process(&program, &home, persistence, &settings, port)?)));
        Some(Self { process: Some(process), port, persistence, program, settings, home })
    }

    /// Ends it at once, whatever it is doing.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again where it was, and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn restart(&mut self) {
        self.kill();
        let begun = Self::process(&self.program, &self.home, self.persistence, &self.settings, self.port);
        self.process = Some(begun.unwrap_or_else(|said| panic!("Redis does not start again: {said}")));
    }

    /// Where it is, as stores want to know it.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
    }

    /// Where it is, as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it answers to a command such as `SET a 1`, in one line and as the protocol has it: `+OK`, `:1`, `$-1`; a
    /// text is a line of its length and one of itself.
    ///
    /// # Panics
    /// When it is not there.
    pub fn ask(&self, command: &str) -> String {
        answer(self.port, command).expect("a Redis that was not killed answers")
    }

    fn process(
        program: &std::path::Path,
        home: &Home,
        persistence: Persistence,
        settings: &[String],
        port: u16,
    ) -> Result<Running, String> {
        let mut command = home.command(program);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly"]);
        match persistence {
            Persistence::None => command.arg("no"),
            Persistence::EachWrite => command.args(["yes", "--appendfsync", "always"]),
        };
        command.args(settings);
        Running::start(&mut command, home.path().join("log"), || {
            answer(port, "PING").is_ok_and(|answer| answer == "+PONG")
        })
    }
}

fn answer(port: u16, command: &str) -> io::Result<String> {
    let mut line = TcpStream::connect(("127.0.0.1", port))?;
    line.set_read_timeout(Some(Duration::from_secs(5)))?;
    // It answers both, and then ends the connection.
    line.write_all(format!("{command}\r\nQUIT\r\n").as_bytes())?;
    let mut answer = String::new();
    line.read_to_string(&mut answer)?;
    Ok(answer.strip_suffix("+OK\r\n").unwrap_or(&answer).trim_end().to_owned())
}
