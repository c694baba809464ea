//! Steps and what comes of them.

use crate::{Result, Session};
use kerntune_work::{IoContext, Key};
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A step's name: for plans and scripts, and in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepName {
    name: &'static str,
    about: &'static str,
    compiles: bool,
}

impl StepName {
    /// `name` in kebab-case, one of its kind in a recipe; `about` says what is done.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, compiles: false }
    }

    /// The same of a step that compiles a whole kernel.
    pub const fn compiling(self) -> Self {
        Self { compiles: true, ..self }
    }

    /// Whether it compiles a whole kernel: minutes, where others take seconds.
    pub fn compiles(self) -> bool {
        self.compiles
    }

    /// For plans and scripts.
    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// What is done, for people.
    pub fn about(self) -> &'static str {
        self.about
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about)
    }
}

impl Serialize for StepName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Something to be made. It reads nothing but its own fields, the work directory's results that these name, and the
/// machine: whoever has these can make it, here or elsewhere.
pub trait Step {
    /// What comes of it.
    type Output: Artifact;

    /// Its name in the plan.
    fn name(&self) -> StepName;

    /// Adds every field that decides what comes of it to the key.
    ///
    /// # Errors
    /// An input that cannot be read.
    fn inputs(&self, key: Key, session: &Session) -> Result<Key>;

    /// Makes it. The result is in the work directory, named by its content.
    ///
    /// # Errors
    /// Those of what is done.
    fn make(&self, session: &Session) -> Result<Self::Output>;
}

/// A result in the work directory as a value.
pub trait Artifact: Sized {
    /// Reads it back.
    ///
    /// # Errors
    /// Files that are missing or not as they were written.
    fn load(directory: &Path) -> Result<Self>;

    /// Where it is.
    fn directory(&self) -> &Path;
}

/// A result of which nothing but its place matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(pub PathBuf);

impl Artifact for Directory {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self(directory.canonicalize().at("open", directory)?))
    }

    fn directory(&self) -> &Path {
        &self.0
    }
}
