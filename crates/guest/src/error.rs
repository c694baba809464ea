//! Errors between a workload file and a guest image.

use crate::Problem;
use kerntune_work::{ClassifyError, ErrorClass};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// An error of a workload or an image. Messages name the file or package, who needs it, and what to
/// do.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error("the workload {} cannot be used:{}", path.display(), list(problems))]
    Invalid { path: PathBuf, problems: Vec<Problem> },
    #[error("there is no workload {name}; looked for {name}.toml in {searched}; {help}")]
    NotFound { name: String, searched: String, help: String },
    #[error(
        "package {package} of workload {workload} is not installed; install it: apt-get install {package}"
    )]
    Package { package: String, workload: String },
    #[error(
        "dpkg-query failed on package {package} ({how}): {said}; see that `dpkg-query -L {package}` works on this machine"
    )]
    PackageQuery { package: String, how: String, said: String },
    #[error("{program}, needed by {needed_by}, is not on this machine; {help}")]
    Program { program: String, needed_by: String, help: String },
    #[error(
        "library {library}, needed by {}, is in none of {searched}; install the package that has it \
         (apt-file search {library})",
        needed_by.display()
    )]
    Library { library: String, needed_by: PathBuf, searched: String },
    #[error("{}, needed by {needed_by}, cannot be packed: {why}", path.display())]
    Unpackable { path: PathBuf, needed_by: String, why: String },
    #[error("the guest image of workload {workload} is too large: {problem}")]
    TooLarge { workload: String, problem: String },
    #[error(
        "workload {workload} has no run `{run}`; add [[{run}.step]] with a command to its file, or choose another workload"
    )]
    NoRun { workload: String, run: String },
    #[error("the command's first run on this machine told something unknown: {line:?}; remove guest-programs in the work directory")]
    Discovery { line: String },
    #[error("the image {} cannot be used: {what}", path.display())]
    Image { path: PathBuf, what: String },
    #[error("the root {} cannot be used: {what}", root.display())]
    OtherRoot { root: PathBuf, what: String },
    #[error("{} is not a usable ELF file ({what}); reinstall the package it belongs to", path.display())]
    Elf { path: PathBuf, what: String },
    #[error("cannot compile the guest program {program}:\n{output}\n{help}")]
    Compile { program: String, output: String, help: &'static str },
}

impl Error {
    /// An [`Error::Unpackable`].
    pub(crate) fn unpackable(path: &Path, needed_by: &str, why: impl ToString) -> Self {
        Self::Unpackable { path: path.to_owned(), needed_by: needed_by.to_owned(), why: why.to_string() }
    }
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::Package { .. }
            | Self::PackageQuery { .. }
            | Self::Program { .. }
            | Self::Library { .. }
            | Self::Compile { .. } => ErrorClass::MissingPrerequisite,
            _ => ErrorClass::Usage,
        }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        let _ = write!(text, "\n  {problem}");
        text
    })
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
