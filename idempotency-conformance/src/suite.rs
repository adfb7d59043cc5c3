//! Sets of vectors: the suite's own, which is part of this library, and others from a folder.

mod foreign;
mod own;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use crate::vector::{Asked, Step, Vector};

/// A set of vectors, sorted by tier and id.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name in reports.
    pub name: String,
    /// What it consists of.
    pub vectors: Vec<Vector>,
}

impl Suite {
    /// The vectors of this library.
    ///
    /// # Panics
    /// Never in a build that passed its tests: the files are part of it.
    pub fn own() -> Self {
        let vectors = own::FILES.iter().map(|(id, text)| {
            let vector: Vector = serde_json::from_str(text).unwrap_or_else(|error| panic!("{id}: {error}"));
            vector
        });
        Self::of(concat!("idempotency-conformance ", env!("CARGO_PKG_VERSION")), vectors.collect())
    }

    /// The vectors in a folder with the subfolders `core`, `profile` and `attack`, of which at least one is there: each
    /// file in this suite's schema, or in the first schema that such vectors were published in, which anyonce uses.
    ///
    /// # Errors
    /// [`SuiteError`] says which file cannot be read, and why.
    pub fn read(folder: &Path) -> Result<Self, SuiteError> {
        let mut vectors = Vec::new();
        for tier in ["core", "profile", "attack"] {
            let folder = folder.join(tier);
            if folder.is_dir() {
                for path in files(&folder)? {
                    vectors.push(read(&path)?);
                }
            }
        }
        if vectors.is_empty() {
            return Err(SuiteError::Empty { folder: folder.to_owned() });
        }
        let suite = Self::of(&folder.display().to_string(), vectors);
        match suite.vectors.windows(2).find(|pair| pair[0].id == pair[1].id) {
            None => Ok(suite),
            Some(pair) => Err(SuiteError::Twice { folder: folder.to_owned(), id: pair[0].id.clone() }),
        }
    }

    fn of(name: &str, mut vectors: Vec<Vector>) -> Self {
        vectors.sort_by(|a, b| (a.tier, &a.id).cmp(&(b.tier, &b.id)));
        Self { name: name.to_owned(), vectors }
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let unreadable = |source| SuiteError::Unreadable { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    Ok(paths)
}

fn read(path: &Path) -> Result<Vector, SuiteError> {
    let unreadable = |source| SuiteError::Unreadable { path: path.to_owned(), source };
    let no_vector = |source| SuiteError::NoVector { path: path.to_owned(), source };
    // A pipe or a device may have no end.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(SuiteError::NoFile { path: path.to_owned() });
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(no_vector)?;
    // Only the first schema says which page a vector is about; this one lets the requests speak.
    let vector = if value.get("fixture").is_some() {
        serde_json::from_value::<foreign::Vector>(value).map_err(no_vector)?.into()
    } else {
        serde_json::from_value::<Vector>(value).map_err(no_vector)?
    };
    let path = path.to_owned();
    if let Some(name) = unnamed(&vector) {
        return Err(SuiteError::NoRequest { path, name: name.to_owned() });
    }
    if let Some(name) = unanswered(&vector) {
        return Err(SuiteError::NoAnswer { path, name: name.to_owned() });
    }
    Ok(vector)
}

/// The name of a request that a step wants and the vector does not have.
fn unnamed(vector: &Vector) -> Option<&str> {
    let mut named = vector.asked().filter_map(|asked| match asked {
        Asked::Named(name) => Some(name.as_str()),
        Asked::Written(_) => None,
    });
    named.find(|name| !vector.requests.contains_key(*name))
}

/// The name of an answer that a step wants and no earlier one gets.
fn unanswered(vector: &Vector) -> Option<&str> {
    let (mut started, mut told) = (BTreeSet::new(), BTreeSet::new());
    for step in &vector.steps {
        let wanted: Vec<&str> = match step {
            Step::Send(send) => send.expect.answers(),
            Step::Await(awaited) if !started.remove(awaited.answer.as_str()) => return Some(&awaited.answer),
            Step::Await(awaited) => awaited.expect.answers(),
            Step::Race(race) => race.each.answers(),
            Step::Agree(agree) => agree.answers.iter().map(String::as_str).collect(),
            Step::Start(_) | Step::Runs(_) | Step::WaitMs(_) | Step::Restart(_) => Vec::new(),
        };
        if let Some(unanswered) = wanted.into_iter().find(|name| !told.contains(name)) {
            return Some(unanswered);
        }
        match step {
            Step::Start(start) => started.insert(start.name.as_str()),
            Step::Send(send) => told.insert(send.name.as_str()),
            Step::Await(awaited) => told.insert(awaited.answer.as_str()),
            Step::Race(race) => race.name.as_deref().is_some_and(|name| told.insert(name)),
            Step::Runs(_) | Step::Agree(_) | Step::WaitMs(_) | Step::Restart(_) => false,
        };
    }
    None
}

/// Why there is no such set of vectors.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What should be a file is something else.
    #[error("{} is not a file", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
    },
    /// A vector is there twice, and a report could not tell one from the other.
    #[error("{} holds {id} twice", folder.display())]
    Twice {
        /// Where.
        folder: PathBuf,
        /// Its id.
        id: String,
    },
    /// A file is not a vector in a schema that is known.
    #[error("{} is not a vector", path.display())]
    NoVector {
        /// Which.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A step names a request that its vector does not have.
    #[error("{} has no request {name:?}", path.display())]
    NoRequest {
        /// Which file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A step wants an answer that no earlier step gets.
    #[error("{} has no answer {name:?} by then", path.display())]
    NoAnswer {
        /// Which file.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// There is no vector.
    #[error("{} holds no vectors: none of its subfolders core, profile and attack has a JSON file", folder.display())]
    Empty {
        /// Where.
        folder: PathBuf,
    },
}

#[cfg(test)]
mod tests;
