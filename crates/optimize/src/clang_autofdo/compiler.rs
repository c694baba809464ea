//! Check of compilers for the recipe.

use super::probe::{autofdo, thin_lto};
use super::NAME;
use crate::llvm::{self, ProfileTools};
use crate::{probe, Error, Result};
use kerntune_kernel::{installed, Compiler};

/// Oldest supported Clang: the first one whose discriminators and tools are known to work for
/// kernels.
const FIRST_MAJOR: u32 = 19;

/// Tools that the recipe needs beside the compiler.
const TOOLS: [&str; 4] = ["ld.lld", "llvm-nm", llvm::TOOLS[0], llvm::TOOLS[1]];

/// Returns the compiler that the recipe uses by default: the newest installed Clang that has all
/// its tools. Without one it is a name by which to ask for the missing programs.
pub fn default_compiler() -> Compiler {
    let clangs: Vec<Compiler> = installed("clang")
        .into_iter()
        .filter(|clang| clang.major >= FIRST_MAJOR)
        .filter_map(|clang| clang.name.parse().ok())
        .collect();
    let is_whole = |clang: &&Compiler| clang.llvm_tools().is_some_and(|llvm| llvm.absent(&TOOLS).is_empty());
    let best = clangs.iter().find(is_whole).or(clangs.first()).cloned();
    best.unwrap_or_else(|| Compiler::Clang { llvm: format!("-{FIRST_MAJOR}") })
}

/// Checks that `compiler`, as installed with its tools, is a Clang that the recipe can use.
///
/// # Errors
/// [`Error::Compiler`]; absent programs as [`Compiler::identify`] and [`Error::NoPrograms`] report
/// them.
pub fn check_compiler(compiler: &Compiler) -> Result<()> {
    let needs = format!("Clang {FIRST_MAJOR} or later, such as {}", default_compiler());
    let refuse = |found| Err(Error::Compiler { recipe: NAME, found, needs });
    if let Compiler::Gcc { .. } = compiler {
        return refuse(compiler.program());
    }
    let identity = compiler.identify()?;
    match identity.major() {
        Some(major) if major >= FIRST_MAJOR => {
            ProfileTools::of(compiler)?.versions()?;
            probe::check(NAME, compiler, &identity, autofdo)
        }
        _ => refuse(identity.version),
    }
}

/// Checks that `compiler` and its linker generate code at link time, with a profile.
///
/// # Errors
/// As [`check_compiler`].
pub fn check_thin_lto(compiler: &Compiler) -> Result<()> {
    check_compiler(compiler)?;
    probe::check("clang-autofdo+thinlto", compiler, &compiler.identify()?, thin_lto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_compiler_of_the_recipe() {
        let newest = installed("clang").into_iter().next().unwrap();
        assert_eq!(default_compiler().to_string(), newest.name);
        check_thin_lto(&default_compiler()).unwrap();
        assert!(check_compiler(&Compiler::default()).unwrap_err().to_string().contains("Clang 19 or later"));
    }
}
