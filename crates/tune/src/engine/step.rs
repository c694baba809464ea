//! Steps and their results.

use crate::{Result, Session};
use kerntune_work::{IoContext, Key};
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of a step: a short one for plans and scripts, and a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepName {
    name: &'static str,
    about: &'static str,
    compiles: bool,
}

impl StepName {
    /// Creates a name. `name` is in kebab-case and unique within a recipe; `about` describes the
    /// work.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, compiles: false }
    }

    /// Marks a step that compiles a whole kernel.
    pub const fn compiling(self) -> Self {
        Self { compiles: true, ..self }
    }

    /// Returns whether the step compiles a whole kernel: minutes, where others take seconds.
    pub fn compiles(self) -> bool {
        self.compiles
    }

    /// Returns the name for plans and scripts.
    pub fn as_str(self) -> &'static str {
        self.name
    }

    /// Returns the description.
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

/// A unit of work. It reads nothing but its own fields, the results that these name, and the
/// machine, so it can be made here or elsewhere.
pub trait Step {
    /// Type of the result.
    type Output: Artifact;

    /// Returns the name in the plan.
    fn name(&self) -> StepName;

    /// Adds every field that affects the result to the key.
    ///
    /// # Errors
    /// An input that cannot be read.
    fn inputs(&self, key: Key, session: &Session) -> Result<Key>;

    /// Makes the result, which is in the work directory, named by its content.
    ///
    /// # Errors
    /// Those of the work.
    fn make(&self, session: &Session) -> Result<Self::Output>;
}

/// A result in the work directory as a value.
pub trait Artifact: Sized {
    /// Reads the result from its directory.
    ///
    /// # Errors
    /// Files that are missing or changed.
    fn load(directory: &Path) -> Result<Self>;

    /// Returns the directory of the result.
    fn directory(&self) -> &Path;
}

/// A result of which only the directory matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultDirectory(pub PathBuf);

impl Artifact for ResultDirectory {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self(directory.canonicalize().at("open", directory)?))
    }

    fn directory(&self) -> &Path {
        &self.0
    }
}
