//! Finding programs, and handing them an environment that does not leak into a kernel.

use crate::{Error, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `program` is: itself if it is a path, else the first match on the PATH.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let runnable = |p: &Path| p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        let path = PathBuf::from(program);
        return runnable(&path).then_some(path);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|p| runnable(p))
}

/// Names every absent program at once, with the Debian packages that bring them.
pub(crate) fn require(wanted: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|(program, _)| which(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<String> = missing.iter().map(|(_, package)| package.to_string()).collect();
    packages.dedup();
    Err(Error::MissingTools { programs: missing.iter().map(|(p, _)| p.to_string()).collect(), packages })
}

/// Variables of the caller's environment that would change what is built. `make demo` runs us
/// below make, whose MAKEFLAGS (jobserver included) must not reach Kbuild.
const UNWANTED: &[&str] = &[
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "ARCH",
    "SUBARCH",
    "SRCARCH",
    "CROSS_COMPILE",
    "CC",
    "LD",
    "HOSTCC",
    "LLVM",
    "LLVM_IAS",
    "KCFLAGS",
    "KAFLAGS",
    "KCPPFLAGS",
    "KRUSTFLAGS",
    "CFLAGS_KERNEL",
    "AFLAGS_KERNEL",
    "LDFLAGS_vmlinux",
    "HOSTCFLAGS",
    "HOSTLDFLAGS",
    "LOCALVERSION",
    "O",
    "V",
    "W",
    "C",
    "M",
    "KCONFIG_CONFIG",
    "KCONFIG_ALLCONFIG",
    "KCONFIG_SEED",
    "CPATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "SOURCE_DATE_EPOCH",
    "GIT_DIR",
    "GIT_WORK_TREE",
];

/// Clears what would leak in and pins what would differ from one build to the next.
pub(crate) fn pin_environment(command: &mut Command) {
    for name in UNWANTED {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KBUILD_") {
            command.env_remove(name);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("KBUILD_BUILD_TIMESTAMP", "Wed Jan  1 00:00:00 UTC 2025")
        .env("KBUILD_BUILD_USER", "kerntune")
        .env("KBUILD_BUILD_HOST", "kerntune")
        .env("KBUILD_BUILD_VERSION", "1");
}

/// Refuses paths that make or the shell of Kbuild would take apart.
pub(crate) fn plain_path(path: &Path) -> Result<()> {
    let bad = path.to_string_lossy().chars().find(|c| !(c.is_alphanumeric() || "/._-+@,=~".contains(*c)));
    match bad {
        Some(character) => Err(Error::UnusablePath { path: path.to_owned(), character }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_program_is_named_with_its_package() {
        let error =
            require(&[("sh", "dash"), ("no-such-flex", "flex"), ("no-such-bison", "bison")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "missing: no-such-flex, no-such-bison; run `apt-get install flex bison` or `make setup`"
        );
    }

    #[test]
    fn paths_that_make_would_split_are_refused() {
        assert!(plain_path(Path::new("/work/main/.kerntune/kernels/0123.partial/build")).is_ok());
        for bad in ["/a b", "/a:b", "/a$b", "/a'b", "/a#b", "/a%b"] {
            assert!(plain_path(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
