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
    Invalid {
        /// The workload file.
        path: PathBuf,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// No such workload.
    #[error("there is no workload {name}; looked for {name}.toml in {searched}; known: {known}")]
    NotFound {
        /// The name as it was given.
        name: String,
        /// The places that were looked in, separated by commas.
        searched: String,
        /// The names of the shipped workloads, separated by commas.
        known: String,
    },
    /// A package named by the workload is not installed.
    #[error(
        "package {package} of workload {workload} is not installed; install it: apt-get install {package}"
    )]
    Package {
        /// The package's name.
        package: String,
        /// The workload's name.
        workload: String,
    },
    /// The package database does not answer.
    #[error(
        "dpkg-query failed on package {package} ({how}): {said}; see that `dpkg-query -L {package}` works on this machine"
    )]
    PackageQuery {
        /// The package that was asked about.
        package: String,
        /// How `dpkg-query` ended.
        how: String,
        /// The last lines that `dpkg-query` printed.
        said: String,
    },
    /// A program or a file is not on this machine.
    #[error("{program}, needed by {needed_by}, is not on this machine; {help}")]
    Program {
        /// The name or path that was looked for.
        program: String,
        /// Which key of the workload or which file names it.
        needed_by: String,
        /// How to install or correct it.
        help: String,
    },
    /// A shared library cannot be found.
    #[error(
        "library {library}, needed by {}, is in none of {searched}; install the package that has it \
         (apt-file search {library})",
        needed_by.display()
    )]
    Library {
        /// The name in the program's list of needed libraries (`DT_NEEDED`).
        library: String,
        /// The program or library that needs it.
        needed_by: PathBuf,
        /// The directories that were looked in, separated by commas.
        searched: String,
    },
    /// A file is there but cannot go into the image.
    #[error("{}, needed by {needed_by}, cannot be packed: {why}", path.display())]
    Unpackable {
        /// The file on the host, or its path in the image.
        path: PathBuf,
        /// Which key of the workload or which file names it.
        needed_by: String,
        /// The reason: it cannot be read, or is nothing that an image holds.
        why: String,
    },
    /// All of it together cannot be unpacked in the guest.
    #[error("the guest image of workload {workload} is too large: {problem}")]
    TooLarge {
        /// The workload's name.
        workload: String,
        /// The size, the limit, and what to do.
        problem: String,
    },
    /// A run that the workload does not have.
    #[error(
        "workload {workload} has no run `{run}`; add [[{run}.step]] with a command to its file, or choose another workload"
    )]
    NoRun {
        /// The workload's name.
        workload: String,
        /// The run that was asked for.
        run: String,
    },
    /// An ELF file whose headers make no sense.
    #[error("{} is not a usable ELF file ({what}); reinstall the package it belongs to", path.display())]
    Elf {
        /// The program or library on the host.
        path: PathBuf,
        /// What is wrong with its headers.
        what: String,
    },
    /// Our own guest program does not compile here.
    #[error("cannot compile the guest program {program}:\n{output}\n{help}")]
    Compile {
        /// The program's name, or the question that the compiler was asked.
        program: String,
        /// What the compiler printed.
        output: String,
        /// What to install.
        help: &'static str,
    },
}

fn list(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        let _ = write!(text, "\n  {problem}");
        text
    })
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
