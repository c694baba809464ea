//! Check of compilers for the recipe.

use super::probe::counters;
use super::NAME;
use crate::{probe, Error, Result};
use kerntune_convert::gcda::GcovVersion;
use kerntune_kernel::{Compiler, CompilerIdentity};

/// Oldest supported GCC; the newest one is the newest whose counters can be read.
const FIRST_MAJOR: u32 = 12;

/// Checks that `compiler`, as installed, is a GCC that the recipe can use.
///
/// # Errors
/// [`Error::Compiler`]; an absent GCC as [`Compiler::identify`] reports it.
pub fn check_compiler(compiler: &Compiler) -> Result<()> {
    let needs = format!("GCC {FIRST_MAJOR} to {}", GcovVersion::LAST_MAJOR);
    let refuse = |found| Err(Error::Compiler { recipe: NAME, found, needs });
    if let Compiler::Clang { .. } = compiler {
        return refuse(compiler.program());
    }
    let identity = compiler.identify()?;
    match gcc_version(&identity) {
        Some((major, _)) if (FIRST_MAJOR..=GcovVersion::LAST_MAJOR).contains(&major) => {
            probe::check(NAME, compiler, &identity, counters)
        }
        _ => refuse(identity.version),
    }
}

/// Parses major and minor number of `gcc (Debian 12.2.0-14+deb12u1) 12.2.0`.
pub(super) fn gcc_version(identity: &CompilerIdentity) -> Option<(u32, u32)> {
    identity.version.split_whitespace().rev().find_map(|word| {
        let numbers = word.split('.').map(|n| n.parse().ok()).collect::<Option<Vec<u32>>>()?;
        match numbers[..] {
            [major, minor, _] => Some((major, minor)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_gcc_says_of_itself() {
        let version = |text: &str| {
            gcc_version(&CompilerIdentity { program: "/usr/bin/gcc".into(), version: text.into() })
        };
        assert_eq!(version("gcc (Debian 12.2.0-14+deb12u1) 12.2.0"), Some((12, 2)));
        assert_eq!(version("gcc-14 (Ubuntu 14.2.0-4ubuntu2) 14.2.0"), Some((14, 2)));
        assert_eq!(version("gcc (GCC) 15.0.1 20250418 (experimental)"), Some((15, 0)));
        assert_eq!(version("cc"), None);
    }
}
