//! Floors: what a module or a crate may use is what stands below it.

use std::collections::HashMap;

use crate::{
    Offence,
    source::{code, names_under, production},
};

/// The floors of `idempotency-core`, from the ground up, and the modules on each.
const FLOORS: [(&str, &[&str]); 5] = [
    (
        "words",
        &["key", "operation", "fingerprint", "lease", "outcome", "record", "claim", "clock", "columns"],
    ),
    ("law", &["machine"]),
    ("ports", &["store", "inspect", "erased", "notify", "ledger"]),
    (
        "engine",
        &[
            "engine",
            "calls",
            "permit",
            "keeper",
            "lease_lost",
            "live",
            "flight",
            "waiting",
            "policy",
            "event",
        ],
    ),
    ("profiles", &["profile"]),
];
const PORTS: usize = 2;

/// The doors: what stands above every store.
pub const DOORS: [&str; 8] = [
    "idempotency-tower",
    "idempotency-axum",
    "idempotency-actix",
    "idempotency-tonic",
    "idempotency-queue",
    "idempotency-webhook",
    "idempotency-agent",
    "idempotency-mcp",
];

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|(_, modules)| modules.contains(&module))
}

/// Which module each name at the root of `idempotency-core` comes from.
#[derive(Debug)]
pub struct Exports(HashMap<String, String>);

impl Exports {
    /// Reads the root file's text.
    pub fn read(root: &str) -> Self {
        let code = code(root);
        let mut exports = HashMap::new();
        for statement in code.split("pub use ").skip(1) {
            let statement = statement.split(';').next().unwrap_or_default();
            let Some((module, names)) = statement.split_once("::") else { continue };
            for name in
                names.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty())
            {
                exports.insert(name.to_owned(), module.trim().to_owned());
            }
        }
        Self(exports)
    }

    /// The module that `name` is, or comes from.
    fn module<'a>(&'a self, name: &'a str) -> &'a str {
        self.0.get(name).map_or(name, String::as_str)
    }

    /// Where a module of `idempotency-core` uses a floor above its own, or stands on none.
    pub fn crossings(&self, module: &str, place: &str, text: &str) -> Vec<Offence> {
        let Some(own) = floor_of(module) else {
            return vec![Offence::new(place, format!("the module `{module}` stands on no floor"))];
        };
        self.above(own, "crate", place, text)
    }

    /// Where a store uses more of `idempotency-core` than its ports.
    pub fn store_crossings(&self, place: &str, text: &str) -> Vec<Offence> {
        self.above(PORTS, "idempotency_core", place, text)
    }

    fn above(&self, own: usize, root: &str, place: &str, text: &str) -> Vec<Offence> {
        let code = code(text);
        let used = names_under(production(&code), root).into_iter().map(|name| (name, self.module(name)));
        used.filter_map(|(name, module)| match floor_of(module) {
            Some(floor) if floor <= own => None,
            Some(floor) => {
                let (above, here) = (FLOORS[floor].0, FLOORS[own].0);
                Some(Offence::new(place, format!("`{name}` is of the floor {above}, above {here}")))
            }
            None => Some(Offence::new(place, format!("`{name}` comes from no module with a floor"))),
        })
        .collect()
    }
}

/// Where a door's name stands among the dependencies of a crate in the cellar.
pub fn doors_below<'a>(place: &str, dependencies: impl IntoIterator<Item = &'a str>) -> Vec<Offence> {
    let doors = dependencies.into_iter().filter(|name| DOORS.contains(name));
    doors.map(|door| Offence::new(place, format!("depends on the door {door}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports() -> Exports {
        Exports::read(
            "pub mod clock;\npub use claim::{Claim, Vacant};\npub use engine::Engine;\npub use store::Store;",
        )
    }

    #[test]
    fn a_word_that_knows_the_engine_is_found() {
        let text = "use crate::{Claim, Engine};";
        let found = exports().crossings("record", "record.rs", text);
        assert_eq!(found, [Offence::new("record.rs", "`Engine` is of the floor engine, above words")]);
        assert_eq!(exports().crossings("permit", "permit.rs", text), []);
    }

    #[test]
    fn a_path_in_the_middle_of_code_is_found() {
        let text = "fn f() -> bool { crate::machine::is_removable() }";
        assert_eq!(exports().crossings("claim", "claim.rs", text).len(), 1);
        assert_eq!(exports().crossings("store", "store.rs", text), []);
    }

    #[test]
    fn docs_and_tests_may_look_up() {
        let text =
            "/// See [`Engine`](crate::Engine).\nfn f() {}\n#[cfg(test)]\nmod tests { use crate::Engine; }";
        assert_eq!(exports().crossings("claim", "claim.rs", text), []);
    }

    #[test]
    fn a_module_without_a_floor_is_found() {
        assert_eq!(exports().crossings("attic", "attic.rs", "").len(), 1);
        assert_eq!(exports().crossings("claim", "claim.rs", "use crate::attic::Box;").len(), 1);
    }

    #[test]
    fn a_store_that_knows_the_engine_or_a_profile_is_found() {
        let store = |text| exports().store_crossings("stores/x", text).len();
        assert_eq!(store("use idempotency_core::{Claim, Store, clock::Clock, machine};"), 0);
        assert_eq!(store("use idempotency_core::{Claim, Engine};"), 1);
        assert_eq!(store("use idempotency_core::profile::http::Policy;"), 1);
    }

    #[test]
    fn a_store_on_a_door_is_found() {
        assert_eq!(doors_below("stores/x", ["idempotency-core", "tokio"]), []);
        assert_eq!(doors_below("stores/x", ["idempotency-axum"]).len(), 1);
    }
}
