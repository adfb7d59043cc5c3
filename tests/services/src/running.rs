//! A server's process, from its start until it answers, to its end.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports that the system gives to no outgoing connection, so that a killed server finds its own free again.
const PORTS: std::ops::Range<u16> = 23_000..31_000;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    process: Child,
    log: PathBuf,
}

impl Running {
    /// Starts `command`, whose output goes to `log`, and waits until it `answers`.
    ///
    /// # Errors
    /// It ended, with what it said.
    ///
    /// # Panics
    /// When it cannot be started, or does not answer within a minute.
    pub(crate) fn start(
        command: &mut Command,
        log: PathBuf,
        answers: impl FnMut() -> bool,
    ) -> Result<Self, String> {
        let said = File::create(&log).expect("a log can be written");
        let also = said.try_clone().expect("a log can be written twice");
        command.stdin(Stdio::null()).stdout(said).stderr(also);
        let process = command.spawn().expect("a program that was found can be run");
        let mut running = Self { process, log };
        running.until(answers)?;
        Ok(running)
    }

    fn until(&mut self, mut answers: impl FnMut() -> bool) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            if let Ok(Some(_)) = self.process.try_wait() {
                return Err(self.said());
            }
            if answers() {
                return Ok(());
            }
            assert!(begun.elapsed() < PATIENCE, "a server does not answer: {}", self.said());
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) {
        // Whatever it ended with, it is over.
        let _ = self.process.wait();
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.process.kill();
        self.ended();
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a server on a free port, and on another one if somebody took that meanwhile.
///
/// # Panics
/// When it cannot be started on any of a few ports, with what it said.
pub(crate) fn on_free_port<S>(start: impl Fn(u16) -> Result<S, String>) -> S {
    let mut said = String::new();
    for _ in 0..5 {
        match start(free_port()) {
            Ok(server) => return server,
            Err(why) => said = why,
        }
    }
    panic!("a server does not start: {said}");
}

fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(PORTS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Waits until something holds.
///
/// # Panics
/// When it does not within a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}
