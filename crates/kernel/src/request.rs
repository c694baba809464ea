//! What a kernel is to be built from.

use crate::compiler::FUNCTION_SECTIONS;
use crate::{foreign, Arch, Compiler, Error, Kernel, ObjectFlags, Result, Source};
use kerntune_work::WorkDir;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What the configuration starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BaseConfig {
    /// `make tinyconfig` and our `kernel/base.config`.
    #[default]
    Ours,
    /// A full `.config` of the user's; only `kernel/required.config` is merged over it.
    File(PathBuf),
}

/// The inputs of a build. Start from [`BuildRequest::new`] and set what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// What it is to run on.
    pub arch: Arch,
    /// Kernel source.
    pub source: Source,
    /// Patches for it (`-p1`), in order. By content part of the id.
    pub patches: Vec<PathBuf>,
    /// What the configuration starts from.
    pub base: BaseConfig,
    /// The user's config fragments, in order; the later line wins.
    pub fragments: Vec<PathBuf>,
    /// Config lines that a recipe needs, such as `CONFIG_GCOV_KERNEL=y`. One that does not take is
    /// an error, where one of a fragment is a warning.
    pub extra: Vec<String>,
    /// What compiles it.
    pub compiler: Compiler,
    /// `KCFLAGS`: added to the compilation of every kernel object. No white space within a flag.
    pub kcflags: Vec<String>,
    /// What is different for single objects.
    pub object_flags: Vec<ObjectFlags>,
    /// Further variables for make's command line, for example `("KBUILD_LDFLAGS", "…")`.
    pub make_vars: Vec<(String, String)>,
    /// Give every function a section of its own and keep the objects, so that [`relink`](crate::relink) can
    /// place the functions in any order later.
    pub movable: bool,
    /// A tree of files that is copied into the build directory before the build, such as
    /// `kernel/fork.gcda`, which GCC looks for beside `kernel/fork.o`.
    pub profile_dir: Option<PathBuf>,
    /// What names the profile in the manifest; the content of `profile_dir` where nothing does. In the kernel's id it is
    /// the content alone.
    pub profile_id: Option<String>,
    /// The name to list it under. Not part of the id.
    pub label: String,
    /// The recipe that asks. Not part of the id.
    pub recipe: Option<String>,
    /// The kernel that this is a rebuild of. Not part of the id.
    pub base_id: Option<String>,
    /// Keep the build directory in the result (0.5 GB, more with debug information); [`Kernel::build_dir`](crate::Kernel::build_dir).
    /// Not part of the id: a kernel whose objects were not kept is built again when they are asked for.
    pub keep_objects: bool,
    /// A directory that lends its build directory and gets it back, so that make compiles only what changed since the last
    /// kernel that was built with it. Not part of the id: the kernel is the same without.
    pub pool: Option<PathBuf>,
    /// Build modules too, if the configuration has any.
    pub modules: bool,
    /// Jobs of make; None for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

impl BuildRequest {
    /// A plain kernel of `source` by the default compiler with our own configuration.
    pub fn new(source: Source, label: impl Into<String>) -> Self {
        Self {
            arch: Arch::default(),
            source,
            patches: Vec::new(),
            base: BaseConfig::Ours,
            fragments: Vec::new(),
            extra: Vec::new(),
            compiler: Compiler::default(),
            kcflags: Vec::new(),
            object_flags: Vec::new(),
            make_vars: Vec::new(),
            movable: false,
            profile_dir: None,
            profile_id: None,
            label: label.into(),
            recipe: None,
            base_id: None,
            keep_objects: false,
            pool: None,
            modules: false,
            jobs: None,
        }
    }

    /// The request that `kernel` was built by, but for the contents of a profile and for the order of a relinked
    /// kernel.
    ///
    /// # Errors
    /// A source or a compiler that its manifest does not name in a form that we know; [`Error::Foreign`] for a kernel
    /// that is not of this work directory and names something to run.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Result<Self> {
        foreign::check(work, kernel)?;
        let of = &kernel.manifest;
        Ok(Self {
            arch: of.arch,
            patches: of.source.patches.iter().map(|name| kernel.dir.join(name)).collect(),
            base: BaseConfig::File(kernel.config()),
            compiler: of.cc.parse()?,
            kcflags: of.kcflags.clone(),
            object_flags: of.object_flags.clone(),
            make_vars: of.make_vars.clone(),
            movable: of.movable,
            ..Self::new(of.source.origin.parse()?, of.label.clone())
        })
    }

    /// All of `KCFLAGS`.
    pub(crate) fn flags(&self) -> Vec<String> {
        let movable = self.movable.then(|| FUNCTION_SECTIONS.to_string());
        self.kcflags.iter().cloned().chain(movable).collect()
    }

    /// Refuses what make or the shell below it would take apart.
    pub(crate) fn check(&self) -> Result<()> {
        self.object_flags.iter().try_for_each(ObjectFlags::check)?;
        for flag in &self.kcflags {
            let reason = if flag.chars().any(char::is_whitespace) {
                "it has white space in it: give each flag by itself"
            } else if flag.is_empty() || flag.chars().any(|c| "'\"$#`;&|<>\\".contains(c)) {
                "it is empty or has a character that make or the shell would act on"
            } else {
                continue;
            };
            return Err(Error::UnusableFlag { what: "the compiler flag", value: flag.clone(), reason });
        }
        for (name, value) in &self.make_vars {
            let name_ok = name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) && !name.is_empty();
            let reason = match name.as_str() {
                "ARCH" | "SUBARCH" => {
                    "give the architecture as such (--arch), so that it stands in the manifest"
                }
                "O" | "KBUILD_OUTPUT" | "V" | "KBUILD_VERBOSE" => "kerntune sets this one itself",
                "KCFLAGS" => "give compiler flags as such, so that they stand in the manifest",
                "CC" | "LLVM" => "give the compiler as such, so that it stands in the manifest",
                _ if !name_ok => "it is not the name of a variable",
                _ if value.contains(['\n', '\0']) => "its value has a line end in it",
                _ => continue,
            };
            let value = format!("{name}={value}");
            return Err(Error::UnusableFlag { what: "the make variable", value, reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_make_would_tear_apart_is_refused() {
        let mut request = BuildRequest::new(Source::Debian("6.12".into()), "t");
        request.kcflags = vec!["-fprofile-use".into(), "-Wno-error=coverage-mismatch".into()];
        request.make_vars = vec![("CFLAGS_GCOV".into(), "-fprofile-arcs -ftest-coverage".into())];
        request.check().unwrap();
        for bad in ["-O2 -g", "", "-DX='1'", "$(shell id)"] {
            request.kcflags = vec![bad.into()];
            assert!(request.check().is_err(), "{bad}");
        }
        request.kcflags.clear();
        for bad in ["KCFLAGS", "O", "A B", ""] {
            request.make_vars = vec![(bad.into(), "x".into())];
            assert!(request.check().is_err(), "{bad}");
        }
    }
}
