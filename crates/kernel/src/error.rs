//! Errors of this crate.

use crate::install_advice;
use kerntune_work::{ClassifyError, ErrorClass};
use std::path::PathBuf;

/// Returns how to install packages of programs that `make setup` installs as well.
fn tools_advice(packages: &[String]) -> String {
    let advice = install_advice(packages);
    match advice.starts_with("run ") {
        true => format!("{advice} or `make setup`"),
        false => advice,
    }
}

/// Failure between a kernel source and a built kernel. Each message says what failed, where, and
/// what to do next.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum Error {
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    #[error(transparent)]
    Name(#[from] kerntune_work::NameError),
    #[error("`{given}` is not a kernel source: {reason}; give debian:6.12, a source directory, or a .tar.xz, .tar.gz, .tar.zst or .tar.bz2 file")]
    BadSource { given: String, reason: String },
    #[error(
        "{path} is not there ({}): {}, or give a .tar.xz file; in a checkout of kerntune, `make setup` installs 6.12 and \
         `scripts/setup sources` fetches the newest",
        match &installed[..] {
            [] => "no debian:VERSION is installed".to_owned(),
            some => format!("installed: debian:{}", some.join(", debian:")),
        },
        install_advice(&[format!("linux-source-{version}")])
    )]
    NoDebianSource { version: String, path: PathBuf, installed: Vec<String> },
    #[error("cannot unpack {tarball}: {message}")]
    Unpack { tarball: PathBuf, message: String },
    #[error("no architecture `{given}`; there are x86-64 and um (User-Mode Linux)")]
    UnknownArch { given: String },
    #[error("{what} cannot be had for a kernel of architecture {arch}: build one without --arch")]
    NotOfArch { what: &'static str, arch: crate::Arch },
    #[error("{patch} does not apply to this source:\n{first}")]
    Patch { patch: PathBuf, first: String },
    #[error("{dir} is not a kernel source: {reason}")]
    NotKernelTree { dir: PathBuf, reason: String },
    #[error(
        "{dir} was configured or built in place ({found} is there), and Kbuild then refuses to build \
         elsewhere: run `make -C {dir} mrproper` (it deletes the tree's .config: save it first and give it \
         with --config)"
    )]
    DirtyTree { dir: PathBuf, found: &'static str },
    #[error("{dir} changed while it was being built; run the command again to build what is there now")]
    SourceChanged { dir: PathBuf },
    #[error("Kbuild cannot work in {path}: the path has {character:?} in it; use a work directory or source with a plain path")]
    UnusablePath { path: PathBuf, character: char },
    #[error("{what} `{value}` cannot be handed to make: {reason}")]
    UnusableFlag { what: &'static str, value: String, reason: &'static str },
    #[error("`{name}` cannot be the name of a function in an order: letters, digits, `_`, `.` and `$` only")]
    UnusableName { name: String },
    #[error(
        "the functions of kernel {kernel} ({id}) cannot be moved: build it with `kerntune kernel build --movable`, which \
         gives each a section of its own and keeps the objects"
    )]
    NotMovable { kernel: String, id: String },
    #[error(
        "the objects of kernel {kernel} ({id}) were not kept: build it again with them (`kerntune kernel build \
         --keep-objects` and the options that it was built with)"
    )]
    NoObjects { kernel: String, id: String },
    #[error(
        "no module can be built for the kernel {release}: {dir}: {reason}; run `apt-get install linux-headers-{release}`"
    )]
    NoHeaders { release: String, dir: PathBuf, reason: String },
    #[error("objects of {kernel} and {other} cannot be linked together: {reason}")]
    CannotMix { kernel: String, other: String, reason: String },
    #[error("linker script {path}: {reason}")]
    LinkScript { path: PathBuf, reason: String },
    #[error("cannot {read} {path}: {reason}")]
    Packed { read: &'static str, path: PathBuf, reason: String },
    #[error("a kernel of release {release} cannot be installed: {reason}; change it before it is built")]
    UnusableRelease { release: String, reason: String },
    #[error("{origin}, line {line}: `{text}` {reason}")]
    BadFragment { origin: String, line: usize, text: String, reason: &'static str },
    #[error("this kernel cannot be configured as needed:\n{}", .problems.join("\n"))]
    ConfigRefused { problems: Vec<String> },
    #[error("missing: {}; {}", .programs.join(", "), tools_advice(.packages))]
    MissingTools { programs: Vec<String>, packages: Vec<String> },
    #[error("{step} failed:\n{first}\n{hint}the whole log: {log}")]
    Make { step: String, first: String, hint: String, log: PathBuf },
    #[error("cannot find out where the kernel's structures keep their members: {reason}")]
    TaskLayout { reason: String },
    #[error("{path} cannot be imported: {reason}")]
    CannotImport { path: PathBuf, reason: String },
    #[error(
        "the kernel {release} was imported as shipped, and this needs a kernel that is built here: build one from its source \
         and configuration (`kerntune kernel build --source SOURCE --config CONFIG`)"
    )]
    NoSource { release: String },
    #[error("kernel {kernel} has no module {name}: {help}")]
    NoModule { kernel: String, name: String, help: String },
    #[error("{path} is no module that can be loaded: {reason}")]
    BadModule { path: PathBuf, reason: String },
    #[error("{path}: {reason}")]
    Elf { path: PathBuf, reason: String },
    #[error("kernel {kernel} cannot be built again from what is here: {}", .differences.join("; "))]
    OtherInputs { kernel: String, differences: Vec<String> },
    #[error(
        "the code of kernel {kernel} was rewritten after it was linked, so that no build makes it; what it was \
         rewritten from can be built again: kernel {base}"
    )]
    RewrittenKernel { kernel: String, base: String },
    #[error(
        "{dir} is not of this work directory, and to build from it would run what its files say: {reason}. If you trust \
         it, copy it to {home} and name it by its id"
    )]
    UntrustedKernel { dir: PathBuf, reason: String, home: PathBuf },
    #[error("kernel {kernel} built again is not the same: {what}; what came of it is in {kept}")]
    NotReproduced { kernel: String, what: String, kept: PathBuf },
    #[error("{image} does not hold the code of {vmlinux}: what was built is not one kernel. Build it again; if it stays so, report it")]
    OtherImage { image: PathBuf, vmlinux: PathBuf },
    #[error("{path} is not a kernel image: {reason}")]
    NotImage { path: PathBuf, reason: &'static str },
    #[error("cannot make {package}: {program} said: {said}")]
    Package { package: String, program: &'static str, said: String },
    #[error("no kernel `{name}`; there {known}")]
    UnknownKernel { name: String, known: String },
    #[error("`{name}` means more than one kernel: {}; give more of the id", .candidates.join(", "))]
    AmbiguousKernel { name: String, candidates: Vec<String> },
    #[error("{dir} is not a whole kernel: {reason}; remove it and build again")]
    Damaged { dir: PathBuf, reason: String },
    #[error("{path} is not a kernel of this work directory: kernels are removed by label or id (`kerntune kernel list`)")]
    NotInStore { path: PathBuf },
}

impl ClassifyError for Error {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Work(inner) => inner.class(),
            Self::NoDebianSource { .. } | Self::MissingTools { .. } | Self::OtherInputs { .. } => {
                ErrorClass::MissingPrerequisite
            }
            Self::Make { .. }
            | Self::NotReproduced { .. }
            | Self::OtherImage { .. }
            | Self::Package { .. } => ErrorClass::BuildFailure,
            Self::Damaged { .. } => ErrorClass::RefusedResult,
            _ => ErrorClass::Usage,
        }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
