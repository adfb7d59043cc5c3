//! Manifests: what a package may depend on, and what all of them share.

use std::collections::BTreeSet;

use crate::Offence;

/// Everything `idempotency-core` is built on.
pub const CORE_DEPENDENCIES: [&str; 11] = [
    "blake3",
    "bytes",
    "futures-util",
    "getrandom",
    "json-event-parser",
    "memchr",
    "ryu-js",
    "sfv",
    "siphasher",
    "thiserror",
    "tokio",
];
/// What must not be anywhere below `idempotency-core`: protocols, frameworks and databases are for doors and stores.
pub const FOREIGN_TO_CORE: [&str; 10] = [
    "http",
    "http-body",
    "hyper",
    "tower",
    "tower-service",
    "axum",
    "actix-web",
    "tonic",
    "sqlx",
    "rusqlite",
];
/// What every manifest takes from the workspace.
const SHARED: [&str; 4] = [
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "[lints]\nworkspace = true",
];

/// Where the direct dependencies of `idempotency-core` differ from [`CORE_DEPENDENCIES`].
pub fn core_dependencies<'a>(direct: impl IntoIterator<Item = &'a str>) -> Vec<Offence> {
    let direct: BTreeSet<&str> = direct.into_iter().collect();
    let allowed = BTreeSet::from(CORE_DEPENDENCIES);
    let place = "idempotency-core";
    let added = direct.difference(&allowed).map(|name| Offence::new(place, format!("depends on {name}")));
    let gone = allowed.difference(&direct).map(|name| Offence::new(place, format!("no longer needs {name}")));
    added.chain(gone).collect()
}

/// Which crates of [`FOREIGN_TO_CORE`] are among everything `idempotency-core` is built on.
pub fn foreign_to_core<'a>(tree: impl IntoIterator<Item = &'a str>) -> Vec<Offence> {
    let foreign = tree.into_iter().filter(|name| FOREIGN_TO_CORE.contains(name));
    foreign.map(|name| Offence::new("idempotency-core", format!("{name} is somewhere below it"))).collect()
}

/// Which shared lines a manifest lacks.
pub fn not_shared(place: &str, manifest: &str) -> Vec<Offence> {
    let missing = SHARED.into_iter().filter(|line| !manifest.contains(line));
    missing
        .map(|line| Offence::new(place, format!("its manifest lacks `{}`", line.replace('\n', " "))))
        .collect()
}

/// Which crates of ours a crate that must stand alone depends on.
pub fn not_alone<'a>(place: &str, dependencies: impl IntoIterator<Item = &'a str>) -> Vec<Offence> {
    let ours = dependencies.into_iter().filter(|name| name.starts_with("idempotency-"));
    ours.map(|name| Offence::new(place, format!("depends on {name}, which it judges"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_more_or_less_is_found() {
        assert_eq!(core_dependencies(CORE_DEPENDENCIES), []);
        let more = CORE_DEPENDENCIES.into_iter().chain(["serde"]);
        assert_eq!(core_dependencies(more), [Offence::new("idempotency-core", "depends on serde")]);
        assert_eq!(core_dependencies(CORE_DEPENDENCIES.into_iter().skip(1)).len(), 1);
    }

    #[test]
    fn a_protocol_deep_below_the_core_is_found() {
        assert_eq!(foreign_to_core(["blake3", "tokio", "httparse"]), []);
        assert_eq!(foreign_to_core(["blake3", "http", "sqlx"]).len(), 2);
    }

    #[test]
    fn a_manifest_of_its_own_mind_is_found() {
        let shared = SHARED.join("\n");
        assert_eq!(not_shared("a", &shared), []);
        for line in SHARED {
            assert_eq!(not_shared("a", &shared.replace(line, "edition = \"2021\"")).len(), 1, "{line}");
        }
    }

    #[test]
    fn a_judge_who_knows_the_accused_is_found() {
        assert_eq!(not_alone("idempotency-conformance", ["tokio", "hyper"]), []);
        assert_eq!(not_alone("idempotency-conformance", ["idempotency-core"]).len(), 1);
    }
}
