//! What can go wrong between a workload file and a guest image.

use crate::Problem;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Errors of this crate. Each says which file or package, who needs it, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a child process or the work directory.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// The workload file does not say what it must.
    #[error("the workload {} cannot be used:{}", path.display(), list(problems))]
    Invalid { path: PathBuf, problems: Vec<Problem> },
    /// No such workload.
    #[error("there is no workload {name}; looked for {name}.toml in {searched}; known: {known}")]
    NotFound { name: String, searched: String, known: String },
    /// A package named by the workload is not installed.
    #[error(
        "package {package} of workload {workload} is not installed; install it: apt-get install {package}"
    )]
    Package { package: String, workload: String },
    /// The package database does not answer.
    #[error(
        "dpkg-query failed on package {package} ({how}): {said}; see that `dpkg-query -L {package}` works on this machine"
    )]
    PackageQuery { package: String, how: String, said: String },
    /// A program or a file is not on this machine.
    #[error("{program}, needed by {needed_by}, is not on this machine; {help}")]
    Program { program: String, needed_by: String, help: String },
    /// A shared library cannot be found.
    #[error(
        "library {library}, needed by {}, is in none of {searched}; install the package that has it \
         (apt-file search {library})",
        needed_by.display()
    )]
    Library { library: String, needed_by: PathBuf, searched: String },
    /// A file is there but cannot go into the image.
    #[error("{}, needed by {needed_by}, cannot be packed: {why}", path.display())]
    Unpackable { path: PathBuf, needed_by: String, why: String },
    /// All of it together cannot be unpacked in the guest.
    #[error("the guest image of workload {workload} is too large: {problem}")]
    TooLarge { workload: String, problem: String },
    /// A run that the workload does not have.
    #[error(
        "workload {workload} has no run `{run}`; add [[{run}.step]] with a command to its file, or choose another workload"
    )]
    NoRun { workload: String, run: String },
    /// An ELF file whose headers make no sense.
    #[error("{} is not a usable ELF file ({what}); reinstall the package it belongs to", path.display())]
    Elf { path: PathBuf, what: String },
    /// Our own guest program does not compile here.
    #[error("cannot compile the guest program {program}:\n{output}\n{help}")]
    Compile { program: String, output: String, help: &'static str },
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        let _ = write!(text, "\n  {problem}");
        text
    })
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
