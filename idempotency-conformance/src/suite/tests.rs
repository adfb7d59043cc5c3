use std::path::Path;

use super::*;

#[test]
fn the_list_and_the_folder_hold_the_same_vectors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let read = Suite::read(&folder).unwrap();
    let ids = |suite: &Suite| suite.vectors.iter().map(|vector| vector.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&read), ids(&Suite::own()));
}

#[test]
fn an_id_is_the_path_of_its_file_and_names_its_tier() {
    for (path, text) in own::FILES {
        let vector: Vector = serde_json::from_str(text).unwrap();
        assert_eq!(vector.id, *path);
        assert!(vector.id.starts_with(vector.tier.as_str()), "{path}");
    }
}

#[test]
fn every_vector_of_the_core_cites_its_section() {
    for vector in Suite::own().vectors {
        assert!(vector.tier != crate::vector::Tier::Core || vector.section.is_some(), "{}", vector.id);
    }
}

#[test]
fn every_request_that_a_step_names_is_there() {
    for vector in Suite::own().vectors {
        assert_eq!(unnamed(&vector), None, "{}", vector.id);
    }
}
