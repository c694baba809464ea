//! Request to build a kernel.

use crate::kernels::untrusted;
use crate::make::object_flags::with_sections;
use crate::{Arch, Compiler, Error, Kernel, KernelSource, ObjectFlags, ObjectGroup, Result};
use kerntune_work::WorkDir;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Base of a configuration, which fragments are merged over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BaseConfig {
    /// `make tinyconfig` and kerntune's `embedded/kernel/base.config`.
    #[default]
    Ours,
    /// User's full `.config`; only `embedded/kernel/required.config` is merged over it.
    File(PathBuf),
}

/// Inputs of a build. Start from [`BuildRequest::new`] and set what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// Target architecture.
    pub arch: Arch,
    /// Source of the kernel.
    pub source: KernelSource,
    /// Patches for the source (`-p1`), in order. Their contents are part of the id.
    pub patches: Vec<PathBuf>,
    /// Base of the configuration.
    pub base: BaseConfig,
    /// User's config fragments, in order; the later line wins.
    pub fragments: Vec<PathBuf>,
    /// Config lines that a recipe needs, such as `CONFIG_GCOV_KERNEL=y`. A line that does not take
    /// is an error; in a fragment it is a warning.
    pub extra: Vec<String>,
    /// Compiler to use.
    pub compiler: Compiler,
    /// `KCFLAGS`: flags for every kernel object. No white space within a flag.
    pub kcflags: Vec<String>,
    /// Flags of single objects or directories that differ.
    pub object_flags: Vec<ObjectFlags>,
    /// Groups of objects with flags of their own, such as those that a profile is compiled into.
    pub object_groups: Vec<ObjectGroup>,
    /// Further variables for make's command line, for example `("KBUILD_LDFLAGS", "…")`.
    pub make_vars: Vec<(String, String)>,
    /// Give every function a section of its own and keep the objects, so that
    /// [`relink`](crate::relink) can place the functions in any order later. If a group
    /// [has sections](ObjectGroup::has_sections), only its functions can be placed.
    pub movable: bool,
    /// Tree of files that is copied into the build directory before the build, such as
    /// `kernel/fork.gcda`, which GCC looks for beside `kernel/fork.o`.
    pub profile_dir: Option<PathBuf>,
    /// Id of the profile for the manifest; `None` for a hash of `profile_dir`. The kernel's id
    /// always uses the hash.
    pub profile_id: Option<String>,
    /// Label of the kernel, as given to `kernel build --label`. Not part of the id.
    pub label: String,
    /// Recipe that requests the build. Not part of the id.
    pub recipe: Option<String>,
    /// Id of the base kernel, if this is a rebuild of one. Not part of the id.
    pub base_id: Option<String>,
    /// Keep the build directory in the result (0.5 GB, more with debug information); see
    /// [`Kernel::build_dir`](crate::Kernel::build_dir). Not part of the id: a kernel without its
    /// objects is built again when they are requested.
    pub keep_objects: bool,
    /// Directory that lends its build directory and gets it back, so that make compiles only what
    /// changed since the last build with it. Not part of the id: the kernel is the same without it.
    pub pool: Option<PathBuf>,
    /// Directory of a similar kernel. If it kept its objects, the build begins with a copy of them,
    /// and make compiles only what differs. Not part of the id: the kernel is the same without it.
    pub begin_with: Option<PathBuf>,
    /// Build the modules of the configuration too, and keep them
    /// ([`Kernel::modules`](crate::Kernel::modules)).
    pub modules: bool,
    /// Make's jobs; `None` for one per processor.
    pub jobs: Option<NonZeroUsize>,
}

impl BuildRequest {
    /// Requests a plain kernel of `source` with the default compiler and kerntune's own
    /// configuration.
    pub fn new(source: KernelSource, label: impl Into<String>) -> Self {
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
            object_groups: Vec::new(),
            make_vars: Vec::new(),
            movable: false,
            profile_dir: None,
            profile_id: None,
            label: label.into(),
            recipe: None,
            base_id: None,
            keep_objects: false,
            pool: None,
            begin_with: None,
            modules: false,
            jobs: None,
        }
    }

    /// Returns the request that `kernel` was built by, without the contents of a profile and
    /// without the order of a relinked kernel.
    ///
    /// # Errors
    /// A source or compiler in the manifest that cannot be parsed; [`Error::UntrustedKernel`] for a
    /// kernel from outside of this work directory that names something to run.
    pub fn of(work: &WorkDir, kernel: &Kernel) -> Result<Self> {
        untrusted::check(work, kernel)?;
        let of = &kernel.manifest;
        Ok(Self {
            arch: of.arch,
            patches: of.source.patches.iter().map(|name| kernel.dir.join(name)).collect(),
            base: BaseConfig::File(kernel.config()),
            compiler: of.cc.parse()?,
            kcflags: of.kcflags.clone(),
            object_flags: of.object_flags.clone(),
            object_groups: of.object_groups.clone(),
            make_vars: of.make_vars.clone(),
            movable: of.movable,
            modules: kernel.has_modules(),
            ..Self::new(of.source.origin.parse()?, of.label.clone())
        })
    }

    /// Returns `KCFLAGS` with the flags that `movable` adds.
    pub(crate) fn flags(&self) -> Vec<String> {
        with_sections(&self.kcflags, self.movable, &self.object_groups)
    }

    /// Rejects values that make or its shell would split or interpret.
    pub(crate) fn check(&self) -> Result<()> {
        self.object_flags.iter().try_for_each(ObjectFlags::check)?;
        self.object_groups.iter().try_for_each(ObjectGroup::check)?;
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
        let mut request = BuildRequest::new(KernelSource::Debian("6.12".into()), "t");
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
