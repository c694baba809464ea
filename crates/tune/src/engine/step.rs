//! Steps and their results.

use crate::{Result, Session};
use kerntune_kernel::hash_tree;
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
    run: Option<&'static str>,
}

impl StepName {
    /// Creates a name. `name` is in kebab-case and unique within a recipe; `about` describes the
    /// work.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, compiles: false, run: None }
    }

    /// Marks a step that compiles a whole kernel.
    pub const fn compiling(self) -> Self {
        Self { compiles: true, ..self }
    }

    /// Marks a step that runs the workload once: its training or its measured run.
    pub const fn running(self, run: &'static str) -> Self {
        Self { run: Some(run), ..self }
    }

    /// Returns the name of the workload's run that the step makes.
    pub fn run(self) -> Option<&'static str> {
        self.run
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

/// Work of a step. A function pointer captures nothing, so the result depends on the inputs, the
/// results that these name, and the session alone.
pub type MakeResult<I, O> = fn(&Session, I) -> Result<O>;

/// Input of a step, or several in a tuple or slice.
pub trait StepInput {
    /// Adds everything that affects results to a key.
    ///
    /// # Errors
    /// An input that cannot be read.
    fn add_to(&self, key: Key, session: &Session) -> Result<Key>;
}

impl<T: StepInput + ?Sized> StepInput for &T {
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
        (**self).add_to(key, session)
    }
}

impl<T: StepInput> StepInput for [T] {
    fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
        let key = key.field("count", self.len().to_string());
        self.iter().try_fold(key, |key, input| input.add_to(key, session))
    }
}

impl StepInput for str {
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.field("text", self))
    }
}

impl StepInput for bool {
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.field("flag", self.to_string()))
    }
}

/// Implements [`StepInput`] for tuples: all elements in order.
macro_rules! tuples {
    ($($($element:ident)+;)+) => {
        $(impl<$($element: StepInput),+> StepInput for ($($element,)+) {
            #[allow(non_snake_case)]
            fn add_to(&self, key: Key, session: &Session) -> Result<Key> {
                let ($($element,)+) = self;
                $(let key = $element.add_to(key, session)?;)+
                Ok(key)
            }
        })+
    };
}

tuples! {
    A B;
    A B C;
    A B C D;
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

impl StepInput for ResultDirectory {
    /// Adds the content: supplied counters are no result of ours.
    fn add_to(&self, key: Key, _: &Session) -> Result<Key> {
        Ok(key.field("directory", hash_tree(&self.0)?))
    }
}

impl Artifact for ResultDirectory {
    fn load(directory: &Path) -> Result<Self> {
        Ok(Self(directory.canonicalize().at("open", directory)?))
    }

    fn directory(&self) -> &Path {
        &self.0
    }
}
