//! External programs: checks that they exist, and a pinned environment for them.

use crate::{Error, Result};
use kerntune_work::find_program;
use std::path::Path;
use std::process::Command;

/// Reports all missing programs at once, with the Debian packages that have them.
pub(crate) fn require(wanted: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<_> = wanted.iter().filter(|(program, _)| find_program(program, &[]).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<String> = missing.iter().map(|(_, package)| package.to_string()).collect();
    packages.dedup();
    Err(Error::MissingTools { programs: missing.iter().map(|(p, _)| p.to_string()).collect(), packages })
}

/// Variables of the caller's environment that Kbuild sees: those that locate programs, libraries
/// and temporary files. Make imports all environment variables, so any other could change the
/// build.
const PASSED_ON: &[&str] = &["PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"];

/// Clears the environment, and sets variables that would differ between builds.
pub(crate) fn pin_environment(command: &mut Command) {
    command.env_clear();
    for name in PASSED_ON {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CCACHE_"))
    {
        command.env(name, value);
    }
    command
        .env("LC_ALL", "C")
        // Scripts of the source that import others would leave bytecode beside them.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("KBUILD_BUILD_TIMESTAMP", "Wed Jan  1 00:00:00 UTC 2025")
        .env("KBUILD_BUILD_USER", "kerntune")
        .env("KBUILD_BUILD_HOST", "kerntune")
        .env("KBUILD_BUILD_VERSION", "1");
}

/// Rejects paths that make, Kbuild's shell or the compiler of its tools (`-Wp,-MD,PATH`) would
/// split. A target's path with `=` would be a variable of make: objtool's Makefile passes one to
/// another make.
pub(crate) fn plain_path(path: &Path) -> Result<()> {
    let bad = path.to_string_lossy().chars().find(|c| !(c.is_alphanumeric() || "/._-+@~".contains(*c)));
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

    /// Cargo sets a dozen variables for a test.
    #[test]
    fn make_gets_to_see_nothing_of_the_environment_but_what_finds_things() {
        let mut command = Command::new("env");
        pin_environment(&mut command);
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let names: Vec<&str> = out.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert!(names.contains(&"PATH") && names.contains(&"KBUILD_BUILD_USER"), "{names:?}");
        let mut foreign: Vec<_> = names
            .iter()
            .filter(|name| {
                !PASSED_ON.contains(name) && !name.starts_with("KBUILD_") && !name.starts_with("CCACHE_")
            })
            .collect();
        foreign.sort();
        assert_eq!(foreign, [&"LC_ALL", &"PYTHONDONTWRITEBYTECODE"]);
    }

    #[test]
    fn paths_that_make_would_split_are_refused() {
        assert!(plain_path(Path::new("/work/a@b+c~d/.kerntune/kernels/0123.partial/build")).is_ok());
        for bad in ["/a b", "/a,b", "/a:b", "/a$b", "/a'b", "/a#b", "/a%b", "/a=b"] {
            assert!(plain_path(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
