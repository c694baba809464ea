//! What can go wrong between a kernel source and a kernel.

use std::path::PathBuf;

/// Each message says what failed, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, a process or an interrupt.
    #[error(transparent)]
    Work(#[from] kerntune_work::Error),
    /// A label or a file name that cannot be one.
    #[error(transparent)]
    Name(#[from] kerntune_work::NameError),
    /// The text given as a source is none.
    #[error("`{given}` is not a kernel source: {reason}; give debian:6.12, a source directory, or a .tar.xz, .tar.gz, .tar.zst or .tar.bz2 file")]
    BadSource {
        /// The source as it was typed.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// `debian:X` without the package.
    #[error(
        "{path} is not there ({}): run `apt-get install linux-source-{version}`, if Debian has that version; in a checkout of \
         kerntune, `make setup` installs 6.12 and `scripts/setup sources` fetches the newest",
        match &installed[..] {
            [] => "no debian:VERSION is installed".to_owned(),
            some => format!("installed: debian:{}", some.join(", debian:")),
        }
    )]
    NoDebianSource {
        /// The version after `debian:`.
        version: String,
        /// The tarball that the package would install.
        path: PathBuf,
        /// Versions that are installed.
        installed: Vec<String>,
    },
    /// The tarball did not unpack.
    #[error("cannot unpack {tarball}: {message}")]
    Unpack {
        /// The archive.
        tarball: PathBuf,
        /// What `tar` complained of, or that the kind of archive is unknown.
        message: String,
    },
    /// No architecture of that name.
    #[error("no architecture `{given}`; there are x86-64 and um (User-Mode Linux)")]
    UnknownArch {
        /// The architecture as it was typed.
        given: String,
    },
    /// Something that kernels of one architecture do not have.
    #[error("{what} cannot be had for a kernel of architecture {arch}: build one without --arch")]
    NotOfArch {
        /// What was asked for.
        what: &'static str,
        /// The kernel's architecture.
        arch: crate::Arch,
    },
    /// A patch does not fit the source.
    #[error("{patch} does not apply to this source:\n{first}")]
    Patch {
        /// The patch file.
        patch: PathBuf,
        /// The file and the first hunk that does not apply.
        first: String,
    },
    /// A directory without a kernel in it.
    #[error("{dir} is not a kernel source: {reason}")]
    NotKernelTree {
        /// The source directory, or where an archive was unpacked.
        dir: PathBuf,
        /// What is missing in it or cannot be read.
        reason: String,
    },
    /// Kbuild refuses to build out of tree from a tree that was built in.
    #[error(
        "{dir} was configured or built in place ({found} is there), and Kbuild then refuses to build \
         elsewhere: run `make -C {dir} mrproper` (it deletes the tree's .config: save it first and give it \
         with --config)"
    )]
    DirtyTree {
        /// The source directory.
        dir: PathBuf,
        /// What a build left there, relative to `dir`.
        found: &'static str,
    },
    /// The source directory is not what it was when the build began.
    #[error("{dir} changed while it was being built; run the command again to build what is there now")]
    SourceChanged {
        /// The source directory.
        dir: PathBuf,
    },
    /// Make and shell cannot handle the path.
    #[error("Kbuild cannot work in {path}: the path has {character:?} in it; use a work directory or source with a plain path")]
    UnusablePath {
        /// The work directory, the source, or a directory below them.
        path: PathBuf,
        /// The first character of it that make or the shell would act on.
        character: char,
    },
    /// A compiler flag or make variable that make would tear apart.
    #[error("{what} `{value}` cannot be handed to make: {reason}")]
    UnusableFlag {
        /// What kind of value it is, such as "the compiler flag".
        what: &'static str,
        /// The value as it was given.
        value: String,
        /// Why make cannot take it.
        reason: &'static str,
    },
    /// A function's name that would mean something else in a linker script.
    #[error("`{name}` cannot be the name of a function in an order: letters, digits, `_`, `.` and `$` only")]
    UnusableName {
        /// The name, or the line of the order that it stands in.
        name: String,
    },
    /// A kernel that cannot be linked in another order.
    #[error(
        "the functions of kernel {kernel} ({id}) cannot be moved: build it with `kerntune kernel build --movable`, which \
         gives each a section of its own and keeps the objects"
    )]
    NotMovable {
        /// The kernel's label.
        kernel: String,
        /// The kernel's id.
        id: String,
    },
    /// A kernel without its objects.
    #[error(
        "the objects of kernel {kernel} ({id}) were not kept: build it again with them (`kerntune kernel build \
         --keep-objects` and the options that it was built with)"
    )]
    NoObjects {
        /// The kernel's label.
        kernel: String,
        /// The kernel's id.
        id: String,
    },
    /// Nothing to build a module with.
    #[error(
        "no module can be built for the kernel {release}: {dir}: {reason}; run `apt-get install linux-headers-{release}`"
    )]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// Where its headers would be.
        dir: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Two kernels that cannot be linked from each other's objects.
    #[error("objects of {kernel} and {other} cannot be linked together: {reason}")]
    CannotMix {
        /// The label of the one kernel.
        kernel: String,
        /// The label of the other kernel.
        other: String,
        /// Why their objects do not fit together.
        reason: String,
    },
    /// A linker script that we do not know our way in.
    #[error("linker script {path}: {reason}")]
    LinkScript {
        /// The script in the build directory.
        path: PathBuf,
        /// What is not as expected.
        reason: String,
    },
    /// A configuration that cannot be unpacked.
    #[error("cannot read configuration {path}: {reason}")]
    Packed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A release that is no name of a file.
    #[error("a kernel of release {release} cannot be installed: {reason}; change it before it is built")]
    UnusableRelease {
        /// The version of the source, and what the configuration adds.
        release: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A line of a configuration that is none.
    #[error("{origin}, line {line}: `{text}` {reason}")]
    BadFragment {
        /// The configuration file, or "the recipe's options".
        origin: String,
        /// The line's number, from 1.
        line: usize,
        /// The line's first 80 characters.
        text: String,
        /// What is wrong with it, after the line.
        reason: &'static str,
    },
    /// Options that have to be as asked for are not.
    #[error("this kernel cannot be configured as needed:\n{}", .problems.join("\n"))]
    ConfigRefused {
        /// One message for each option that is not as needed.
        problems: Vec<String>,
    },
    /// Programs that the build needs are not on the PATH.
    #[error("missing: {}; run `apt-get install {}` or `make setup`", .programs.join(", "), .packages.join(" "))]
    MissingTools {
        /// The programs' names.
        programs: Vec<String>,
        /// The Debian packages that have them.
        packages: Vec<String>,
    },
    /// Make ended with an error; `first` is the first one in the log with its surroundings.
    #[error("{step} failed:\n{first}\n{hint}the whole log: {log}")]
    Make {
        /// What make was to do.
        step: String,
        /// The first error in the log, with the lines around it.
        first: String,
        /// What to do about it, as a line with its end; empty where nothing is known.
        hint: String,
        /// The file with all that make printed.
        log: PathBuf,
    },
    /// The layout of structures could not be found.
    #[error("cannot find out where the kernel's structures keep their members: {reason}")]
    TaskLayout {
        /// What the probe of the compiler lacks or complains of.
        reason: String,
    },
    /// Not an ELF file with symbols.
    #[error("{path}: {reason}")]
    Elf {
        /// The kernel's `vmlinux` or another ELF file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What a kernel was made from is not there as it was.
    #[error("kernel {kernel} cannot be built again from what is here: {}", .differences.join("; "))]
    OtherInputs {
        /// The kernel's label.
        kernel: String,
        /// One message for each input that is missing or another.
        differences: Vec<String>,
    },
    /// A kernel that does not come out of a build.
    #[error(
        "the code of kernel {kernel} was rewritten after it was linked, so that no build makes it; what it was \
         rewritten from can be built again: kernel {base}"
    )]
    RewrittenKernel {
        /// The label of the rewritten kernel.
        kernel: String,
        /// The id of the kernel that it was rewritten from.
        base: String,
    },
    /// A kernel of somewhere else names what is to be run to build it.
    #[error(
        "{dir} is not of this work directory, and to build from it would run what its files say: {reason}. If you trust \
         it, copy it to {home} and name it by its id"
    )]
    Foreign {
        /// The kernel's directory.
        dir: PathBuf,
        /// The first thing in its files that may run something.
        reason: String,
        /// Where a copy of it belongs in this work directory.
        home: PathBuf,
    },
    /// The same inputs gave another image.
    #[error("kernel {kernel} built again is not the same: {what}; what came of it is in {kept}")]
    NotReproduced {
        /// The kernel's label.
        kernel: String,
        /// Which files differ.
        what: String,
        /// The directory of the new build.
        kept: PathBuf,
    },
    /// The image to boot is another kernel's.
    #[error("{image} does not hold the code of {vmlinux}: what was built is not one kernel. Build it again; if it stays so, report it")]
    OtherImage {
        /// What would be booted.
        image: PathBuf,
        /// What symbols and lines would be read from.
        vmlinux: PathBuf,
    },
    /// A file without the header of a kernel image.
    #[error("{path} is not a kernel image: {reason}")]
    NotImage {
        /// The file that was taken for an image.
        path: PathBuf,
        /// What an image would have.
        reason: &'static str,
    },
    /// `dpkg-deb` or another packer failed.
    #[error("cannot make {package}: {program} said: {said}")]
    Package {
        /// The name of the Debian package that was to be made.
        package: String,
        /// The packer.
        program: &'static str,
        /// What the packer printed.
        said: String,
    },
    /// No kernel of that name.
    #[error("no kernel `{name}`; there {known}")]
    UnknownKernel {
        /// The name as it was given.
        name: String,
        /// Which kernels there are, for the message: "is none yet", or "are" and a list.
        known: String,
    },
    /// More than one kernel of that name.
    #[error("`{name}` means more than one kernel: {}; give more of the id", .candidates.join(", "))]
    AmbiguousKernel {
        /// The name as it was given.
        name: String,
        /// The kernels that it fits, each as `label (id)`.
        candidates: Vec<String>,
    },
    /// A result directory in which something is missing or of another version.
    #[error("{dir} is not a whole kernel: {reason}; remove it and build again")]
    Damaged {
        /// The kernel's directory.
        dir: PathBuf,
        /// What is missing or wrong in it.
        reason: String,
    },
    /// Something to remove that is not the work directory's.
    #[error("{path} is not a kernel of this work directory: kernels are removed by label or id (`kerntune kernel list`)")]
    NotInStore {
        /// The path as it was given, or that of the kernel that the name means.
        path: PathBuf,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
