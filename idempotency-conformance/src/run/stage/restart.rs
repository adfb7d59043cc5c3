//! The end of the target, and its next beginning.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    process::Command,
    time::{Instant, sleep, timeout},
};

use super::{Stage, Trouble, ask_for_life};
use crate::run::with_sources;

/// How long the command of a restart may take, and then how long the target may take to listen again.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

impl Stage<'_> {
    pub(super) async fn restart(&mut self) -> Result<(), Trouble> {
        self.connections.clear();
        let Some(command) = &self.options.restart else {
            return Err(Trouble::Dangling("--restart".to_owned()));
        };
        let mut shell = Command::new("sh");
        // The standard output is the report's.
        let shell = shell.args(["-c", command]).stdin(Stdio::null()).stdout(io::stderr()).kill_on_drop(true);
        let Ok(ended) = timeout(PATIENCE, shell.status()).await else {
            return Err(Trouble::Restart(format!("{command:?} does not end")));
        };
        match ended {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(Trouble::Restart(format!("{command:?} ended with {status}"))),
            Err(error) => return Err(Trouble::Restart(format!("{command:?}: {error}"))),
        }
        let patience = Instant::now() + PATIENCE;
        while let Err(lost) = ask_for_life(self.target, self.options).await {
            if Instant::now() > patience {
                return Err(Trouble::Restart(with_sources(&lost)));
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }
}
