//! A handle on a server process: start it, wait until a run pauses in it, let the run go on, or kill -9 it.

use std::{io, path::Path, process::Stdio};

use clap::ValueEnum;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::stage::{PAUSED, Pause};

pub(super) struct Server {
    pub(super) port: u16,
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts this very program as a server on the file `db`.
    pub(super) async fn start(db: &Path, pause: Option<Pause>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("stage").arg("--db").arg(db);
        if let Some(value) = pause.and_then(|pause| pause.to_possible_value()) {
            command.arg("--pause").arg(value.get_name());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut output = BufReader::new(output).lines();
        let port = output.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let port = port.parse().map_err(io::Error::other)?;
        Ok(Self { port, process, input, output })
    }

    /// Waits until a run has come to the pause.
    pub(super) async fn paused(&mut self) -> io::Result<()> {
        match self.output.next_line().await? {
            Some(line) if line == PAUSED => Ok(()),
            Some(_) => Err(io::ErrorKind::InvalidData.into()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Lets one paused run go on.
    pub(super) async fn go_on(&mut self) -> io::Result<()> {
        self.input.write_all(b"go on\n").await
    }

    /// Kills the process, which cannot help it (SIGKILL on Unix), and waits until it is gone.
    pub(super) async fn kill(mut self) -> io::Result<()> {
        self.process.kill().await
    }
}
