//! A MariaDB of a test's own, set as no other test should have to live with.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sqlx::{Connection, Executor, MySqlConnection};
use tempfile::TempDir;

/// Killed and removed when it is dropped.
pub(crate) struct Private {
    process: Child,
    directory: TempDir,
}

impl Private {
    /// Starts a server with these options and, in its environment, these variables. `None`, said aloud, where there is
    /// no MariaDB to start: the test is then not run.
    pub(crate) async fn start(options: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        let program = |name: &str| {
            let path = format!("{}:/usr/sbin", env::var("PATH").unwrap_or_default());
            env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
        };
        let (Some(install), Some(server)) = (program("mariadb-install-db"), program("mariadbd")) else {
            let required = env::var_os("IDEMPOTENCY_REQUIRE_STORES").is_some();
            assert!(!required, "MariaDB is not installed, and IDEMPOTENCY_REQUIRE_STORES demands it");
            eprintln!("NOT RUN: MariaDB is not installed");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let data = format!("--datadir={}", directory.path().join("data").display());
        // A server that root starts has to be told that it may be root's.
        let user = is_root().then_some("--user=root");
        let installed = Command::new(install)
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", &data])
            .args(user)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(installed.success());
        let process = Command::new(server)
            .args(["--no-defaults", "--skip-networking", "--innodb-flush-log-at-trx-commit=2", &data])
            .arg(format!("--socket={}", directory.path().join("socket").display()))
            .args(user)
            .args(options)
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let private = Self { process, directory };
        private.connection("mysql").await.execute("CREATE DATABASE shop").await.unwrap();
        Some(private)
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        self.url_of("shop")
    }

    /// A connection to its database.
    pub(crate) async fn beside(&self) -> MySqlConnection {
        self.connection("shop").await
    }

    fn url_of(&self, database: &str) -> String {
        format!("mysql://root@localhost/{database}?socket={}", self.directory.path().join("socket").display())
    }

    async fn connection(&self, database: &str) -> MySqlConnection {
        let (url, begun) = (self.url_of(database), Instant::now());
        loop {
            match MySqlConnection::connect(&url).await {
                Ok(connection) => return connection,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await; // nothing tells when a server is up
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
