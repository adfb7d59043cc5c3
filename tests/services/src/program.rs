//! Programs that are installed, and whose they run as.

use std::{
    env, fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// Where these programs are. `None`, said aloud, when one is not installed: the test that asks is then not run.
///
/// # Panics
/// When one is not installed and `IDEMPOTENCY_REQUIRE_STORES` is set: where it is, a test left out is a failure.
pub(crate) fn find<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let found = names.map(|name| {
        let place = folders().into_iter().map(|folder| folder.join(name)).find(|place| place.is_file());
        if place.is_none() {
            assert!(
                env::var_os("IDEMPOTENCY_REQUIRE_STORES").is_none(),
                "{name} is not installed, and IDEMPOTENCY_REQUIRE_STORES demands every server: run scripts/services up"
            );
            eprintln!("NOT RUN: {name} is not installed; scripts/services up installs it");
        }
        place
    });
    found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
}

/// The newest PostgreSQL's programs are nowhere on the path on Debian, and servers may not be.
fn folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|version| version.path()).collect();
    versions.sort_by_key(|version| {
        let number = version.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        std::cmp::Reverse(number.unwrap_or(0_u32))
    });
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = versions.iter().map(|version| version.join("bin")).collect();
    folders.extend(env::split_paths(&path));
    folders.push("/usr/sbin".into());
    folders
}

/// A folder of a server's own, gone when this is dropped, and the user who runs the server: some refuse to be root's.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    user: &'static str,
}

impl Home {
    /// A new one, where root becomes `user`. Everybody else stays who they are.
    pub(crate) fn of(user: &'static str) -> Self {
        let folder = tempfile::Builder::new().prefix("idempotency-").tempdir();
        let folder = folder.expect("there is room for a temporary folder");
        // The server's user is another than ours, and makes files in it.
        let all = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), all).expect("a folder of ours takes our permissions");
        Self { folder, user }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A command as the server's user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", self.user, "--regid", self.user, "--clear-groups", "--"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.path());
        command
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// Runs a command to its end. What it printed.
///
/// # Panics
/// When it fails, with what it said.
pub(crate) fn run(command: &mut Command) -> String {
    let ended = command.output().expect("a program that was found can be run");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?} failed: {said}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}
