//! The repository keeps the rules of the house.

use std::path::Path;

use idempotency_tidy::{
    Offence,
    floors::{self, Exports},
    manifests, names, readme,
    repository::{Package, Workspace, files, read, root, rust_files},
    sizes,
};

/// Fails with everything that was found, and when nothing was looked at.
fn assert_clean(looked_at: usize, offences: &[Offence]) {
    assert!(looked_at > 0, "nothing was looked at");
    let list: String = offences.iter().map(|offence| format!("\n  {offence}")).collect();
    assert!(offences.is_empty(), "{list}\n");
}

/// A path as it is written in an offence.
fn place(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn packages() -> Vec<Package> {
    Workspace::read().packages()
}

fn stores() -> Vec<Package> {
    packages().into_iter().filter(|package| package.folder.starts_with(root().join("stores"))).collect()
}

fn core_exports() -> Exports {
    Exports::read(&read(&root().join("idempotency-core/src/lib.rs")))
}

#[test]
fn no_module_of_the_core_uses_a_floor_above_its_own() {
    let source = root().join("idempotency-core/src");
    let exports = core_exports();
    let modules = rust_files(&source)
        .into_iter()
        .filter(|path| *path != source.join("lib.rs") && !path.ends_with("tests.rs"));
    let (mut looked_at, mut offences) = (0, Vec::new());
    for path in modules {
        let inside = path.strip_prefix(&source).unwrap();
        let module = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        looked_at += 1;
        offences.extend(exports.crossings(module.trim_end_matches(".rs"), &place(&path), &read(&path)));
    }
    assert_clean(looked_at, &offences);
}

#[test]
fn stores_use_the_core_up_to_its_ports_and_no_door() {
    let exports = core_exports();
    let (mut looked_at, mut offences) = (0, Vec::new());
    for store in stores() {
        let dependencies = store.dependencies.iter().map(String::as_str);
        offences.extend(floors::doors_below(&store.name, dependencies));
        // What grades stores also asks what an engine makes of them. Nothing else in the cellar knows of one.
        let judge = root().join("stores/contract/src/wire/laws/engine.rs");
        for path in rust_files(&store.folder.join("src")).into_iter().filter(|path| *path != judge) {
            looked_at += 1;
            offences.extend(exports.store_crossings(&place(&path), &read(&path)));
        }
    }
    assert_clean(looked_at, &offences);
}

#[test]
fn the_conformance_suite_knows_nothing_of_what_it_judges() {
    let all = packages();
    let judges = all.iter().filter(|package| package.name == "idempotency-conformance");
    let offences: Vec<Offence> = judges
        .flat_map(|judge| manifests::not_alone(&judge.name, judge.dependencies.iter().map(String::as_str)))
        .collect();
    assert_clean(all.len(), &offences);
}

#[test]
fn the_core_depends_on_exactly_what_it_should() {
    let all = packages();
    let core = all.iter().find(|package| package.name == "idempotency-core").unwrap();
    let offences = manifests::core_dependencies(core.normal_dependencies.iter().map(String::as_str));
    assert_clean(core.normal_dependencies.len(), &offences);
}

#[test]
fn no_protocol_framework_or_database_is_below_the_core() {
    let workspace = Workspace::read();
    let tree = workspace.normal_tree("idempotency-core");
    assert!(tree.contains("pin-project-lite"), "the tree was not followed: {tree:?}");
    assert_clean(tree.len(), &manifests::foreign_to_core(tree.iter().copied()));
}

#[test]
fn every_package_takes_the_shared_lines_from_the_workspace() {
    let all = packages();
    let check =
        |package: &Package| manifests::not_shared(&package.name, &read(&package.folder.join("Cargo.toml")));
    assert_clean(all.len(), &all.iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn no_file_or_function_is_too_long() {
    let sources: Vec<_> =
        packages().iter().flat_map(|package| rust_files(&package.folder.join("src"))).collect();
    let production = sources.iter().filter(|path| !path.ends_with("tests.rs"));
    let offences: Vec<_> = production.flat_map(|path| sizes::too_long(&place(path), &read(path))).collect();
    assert_clean(sources.len(), &offences);
}

#[test]
fn no_name_of_a_file_is_empty_of_meaning() {
    let all = files(&root());
    let check = |path: &std::path::PathBuf| names::empty_names(Path::new(&place(path)));
    assert_clean(all.len(), &all.iter().flat_map(check).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_unfinished() {
    let all = rust_files(&root());
    let offences: Vec<_> = all.iter().flat_map(|path| names::unfinished(&place(path), &read(path))).collect();
    assert_clean(all.len(), &offences);
}

#[test]
fn every_readme_of_a_library_is_its_crate_documentation() {
    let all = packages();
    let libraries = all.iter().filter(|package| {
        package.folder.join("README.md").exists() && package.folder.join("src/lib.rs").exists()
    });
    let offences: Vec<_> = libraries
        .filter_map(|package| {
            readme::not_the_crate_doc(&package.name, &read(&package.folder.join("src/lib.rs")))
        })
        .collect();
    assert_clean(all.len(), &offences);
}
