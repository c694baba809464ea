//! What can go wrong between a kernel source and a kernel.

use std::path::PathBuf;

/// Each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// The text given as a source is none.
    #[error("`{given}` is not a kernel source: {reason}; give debian:6.12, a source directory, or a .tar.xz, .tar.gz, .tar.zst or .tar.bz2 file")]
    BadSource { given: String, reason: String },
    /// `debian:X` without the package.
    #[error("{path} is not there: run `apt-get install linux-source-{version}` or `make setup`")]
    NoDebianSource { version: String, path: PathBuf },
    /// The tarball did not unpack.
    #[error("cannot unpack {tarball}: {message}")]
    Unpack { tarball: PathBuf, message: String },
    /// No architecture of that name.
    #[error("no architecture `{given}`; there are x86-64 and um (User-Mode Linux)")]
    UnknownArch { given: String },
    /// Something that kernels of one architecture do not have.
    #[error("{what} cannot be had for a kernel of architecture {arch}: build one without --arch")]
    NotOfArch { what: &'static str, arch: crate::Arch },
    /// A patch does not fit the source.
    #[error("{patch} does not apply to this source:\n{first}")]
    Patch { patch: PathBuf, first: String },
    /// A directory without a kernel in it.
    #[error("{dir} is not a Linux source tree: {reason}")]
    NotKernelTree { dir: PathBuf, reason: String },
    /// Kbuild refuses to build out of tree from a tree that was built in.
    #[error(
        "{dir} was configured or built in place ({found} is there), and Kbuild then refuses to build \
         elsewhere: run `make -C {dir} mrproper` (it deletes the tree's .config: save it first and give it \
         with --config)"
    )]
    DirtyTree { dir: PathBuf, found: &'static str },
    /// The source directory is not what it was when the build began.
    #[error("{dir} changed while it was being built; run the command again to build what is there now")]
    SourceChanged { dir: PathBuf },
    /// Make and shell cannot handle the path.
    #[error("Kbuild cannot work in {path}: the path has {character:?} in it; use a work directory or source with a plain path")]
    UnusablePath { path: PathBuf, character: char },
    /// A compiler flag or make variable that make would tear apart.
    #[error("{what} `{value}` cannot be handed to make: {reason}")]
    UnusableFlag { what: &'static str, value: String, reason: &'static str },
    /// A function's name that would mean something else in a linker script.
    #[error("`{name}` cannot be the name of a function in an order: letters, digits, `_`, `.` and `$` only")]
    UnusableName { name: String },
    /// A kernel that cannot be linked in another order.
    #[error(
        "the functions of kernel {kernel} ({id}) cannot be moved: build it with `kerntune kernel build --movable`, which \
         gives each a section of its own and keeps the objects"
    )]
    NotMovable { kernel: String, id: String },
    /// A kernel without its objects.
    #[error(
        "the objects of kernel {kernel} ({id}) were not kept: build it again with them (`kerntune kernel build \
         --keep-objects` and the options that it was built with)"
    )]
    NoObjects { kernel: String, id: String },
    /// Two kernels that cannot be linked from each other's objects.
    #[error("objects of {kernel} and {other} cannot be linked together: {reason}")]
    CannotMix { kernel: String, other: String, reason: String },
    /// A linker script that we do not know our way in.
    #[error("linker script {path}: {reason}")]
    LinkScript { path: PathBuf, reason: String },
    /// A line of a configuration that is none.
    #[error("{origin}, line {line}: `{text}` is neither `CONFIG_NAME=value` nor `# CONFIG_NAME is not set`")]
    BadFragment { origin: String, line: usize, text: String },
    /// Options that have to be as asked for are not.
    #[error("this kernel cannot be configured as needed:\n{}", .problems.join("\n"))]
    ConfigRefused { problems: Vec<String> },
    /// Programs that the build needs are not on the PATH.
    #[error("missing: {}; run `apt-get install {}` or `make setup`", .programs.join(", "), .packages.join(" "))]
    MissingTools { programs: Vec<String>, packages: Vec<String> },
    /// Make ended with an error; `first` is the first one in the log with its surroundings.
    #[error("{step} failed:\n{first}\n{hint}the whole log: {log}")]
    Make { step: String, first: String, hint: String, log: PathBuf },
    /// The layout of `task_struct` could not be found.
    #[error("cannot find out where task_struct keeps pid and comm: {reason}")]
    TaskLayout { reason: String },
    /// Not an ELF file with symbols.
    #[error("{path}: {reason}")]
    Elf { path: PathBuf, reason: String },
    /// What a kernel was made from is not there as it was.
    #[error("kernel {kernel} cannot be built again from what is here: {}", .differences.join("; "))]
    OtherInputs { kernel: String, differences: Vec<String> },
    /// A kernel that does not come out of a build.
    #[error(
        "the code of kernel {kernel} was rewritten after it was linked, so that no build makes it; what it was \
         rewritten from can be built again: kernel {base}"
    )]
    RewrittenKernel { kernel: String, base: String },
    /// A kernel of somewhere else names what is to be run to build it.
    #[error(
        "{dir} is not of this work directory, and to build from it would run what its files say: {reason}. If you trust \
         it, copy it to {home} and name it by its id"
    )]
    Foreign { dir: PathBuf, reason: String, home: PathBuf },
    /// The same inputs gave another image.
    #[error("kernel {kernel} built again is not the same: {what}; what came of it is in {kept}")]
    NotReproduced { kernel: String, what: String, kept: PathBuf },
    /// A file without the header of a kernel image.
    #[error("{path} is not a kernel image: {reason}")]
    NotImage { path: PathBuf, reason: &'static str },
    /// `dpkg-deb` or another packer failed.
    #[error("cannot make {package}: {program} said: {said}")]
    Package { package: String, program: &'static str, said: String },
    /// No kernel of that name.
    #[error("no kernel `{name}`; there {known}")]
    UnknownKernel { name: String, known: String },
    /// More than one kernel of that name.
    #[error("`{name}` means more than one kernel: {}; give more of the id", .candidates.join(", "))]
    AmbiguousKernel { name: String, candidates: Vec<String> },
    /// A result directory in which something is missing or of another version.
    #[error("{dir} is not a whole kernel: {reason}; remove it and build again")]
    Damaged { dir: PathBuf, reason: String },
    /// Something to remove that is not the work directory's.
    #[error("{path} is not a kernel of this work directory: kernels are removed by label or id (`kerntune kernel list`)")]
    NotInStore { path: PathBuf },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
