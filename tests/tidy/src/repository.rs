//! The repository as these rules see it: its packages as cargo tells them, and its files.

use std::{
    collections::{BTreeSet, HashMap},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The folder the workspace stands in.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace stands two folders up")
}

/// What `cargo metadata` says of the workspace, with the lock file as it is and without a network.
#[derive(Debug)]
pub struct Workspace(Value);

/// A package of the workspace.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// Everything it depends on directly, to build, to run and to test.
    pub dependencies: BTreeSet<String>,
    /// What it depends on directly to run.
    pub normal_dependencies: BTreeSet<String>,
}

/// What the tool that `variable` names, or else `tool`, says to `arguments` in the workspace.
fn answer(variable: &str, tool: &str, arguments: &[&str]) -> Vec<u8> {
    let tool = env::var_os(variable).unwrap_or_else(|| tool.into());
    let told = Command::new(&tool).args(arguments).current_dir(root()).output().expect("the tool can be run");
    assert!(told.status.success(), "{}: {}", tool.display(), String::from_utf8_lossy(&told.stderr));
    told.stdout
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Panics
    /// When cargo cannot be asked or does not know: then nothing is checked, and that must not pass.
    pub fn read() -> Self {
        // Only what this platform needs was downloaded to build these tests.
        let host = answer("RUSTC", "rustc", &["--print", "host-tuple"]);
        let host = str::from_utf8(&host).expect("a platform's name is text").trim_end();
        let ask = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host];
        Self(serde_json::from_slice(&answer("CARGO", "cargo", &ask)).expect("cargo metadata is JSON"))
    }

    /// The members of the workspace.
    pub fn packages(&self) -> Vec<Package> {
        let members: BTreeSet<&str> = texts(&self.0["workspace_members"]).collect();
        let packages = array(&self.0["packages"]);
        packages.filter(|package| members.contains(text(&package["id"]))).map(Package::read).collect()
    }

    /// The names of everything the package `name` needs to run, itself left out.
    pub fn normal_tree(&self, name: &str) -> BTreeSet<&str> {
        let names: HashMap<&str, &str> = array(&self.0["packages"])
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let nodes: HashMap<&str, &Value> =
            array(&self.0["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
        let mut open: Vec<&str> =
            names.iter().filter(|(_, known)| **known == name).map(|(id, _)| *id).collect();
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            let is_normal = |edge: &&Value| array(&edge["dep_kinds"]).any(|kind| kind["kind"].is_null());
            for edge in array(&nodes[id]["deps"]).filter(is_normal) {
                let below = text(&edge["pkg"]);
                if seen.insert(below) {
                    open.push(below);
                }
            }
        }
        seen.into_iter().map(|id| names[id]).collect()
    }
}

impl Package {
    fn read(package: &Value) -> Self {
        let manifest = Path::new(text(&package["manifest_path"]));
        let named = |dependency: &Value| text(&dependency["name"]).to_owned();
        let normal = |dependency: &&Value| dependency["kind"].is_null();
        Self {
            name: text(&package["name"]).to_owned(),
            folder: manifest.parent().expect("a manifest stands in a folder").to_owned(),
            dependencies: array(&package["dependencies"]).map(named).collect(),
            normal_dependencies: array(&package["dependencies"]).filter(normal).map(named).collect(),
        }
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("cargo metadata has a list here").iter()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    array(value).map(text)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo metadata has a text here")
}

/// Every file under `folder`, build output and hidden folders left out.
///
/// # Panics
/// When a folder cannot be listed.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" || name == "__pycache__" {
            continue;
        }
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The Rust files under `folder`.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

/// The text of a file.
///
/// # Panics
/// When it cannot be read.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
