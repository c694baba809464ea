//! Check of compilers for the recipe.

use super::NAME;
use crate::llvm::LlvmTools;
use crate::{Error, Result};
use kerntune_kernel::{Compiler, CompilerIdentity};

/// Oldest supported Clang: the first one whose discriminators and tools are known to work for
/// kernels.
const FIRST_MAJOR: u32 = 19;

/// Returns the compiler that the recipe uses by default.
pub fn default_compiler() -> Compiler {
    Compiler::Clang { llvm: format!("-{FIRST_MAJOR}") }
}

/// Checks that `compiler`, as installed with its tools, is a Clang that the recipe can use.
///
/// # Errors
/// [`Error::Compiler`]; absent programs as [`Compiler::identify`] and [`Error::NoPrograms`] report
/// them.
pub fn check_compiler(compiler: &Compiler) -> Result<()> {
    let needs = format!("Clang {FIRST_MAJOR} or later, such as clang-{FIRST_MAJOR}");
    let refuse = |found| Err(Error::Compiler { recipe: NAME, found, needs });
    if let Compiler::Gcc { .. } = compiler {
        return refuse(compiler.program());
    }
    let identity = compiler.identify()?;
    match clang_major(&identity) {
        Some(major) if major >= FIRST_MAJOR => LlvmTools::of(compiler)?.versions().map(drop),
        _ => refuse(identity.version),
    }
}

/// Parses the major number of `Debian clang version 19.1.7 (3~deb12u1)`.
fn clang_major(identity: &CompilerIdentity) -> Option<u32> {
    let (_, rest) = identity.version.split_once("clang version ")?;
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_clang_says_of_itself() {
        let major = |text: &str| {
            clang_major(&CompilerIdentity { program: "/usr/bin/clang".into(), version: text.into() })
        };
        assert_eq!(major("Debian clang version 19.1.7 (3~deb12u1)"), Some(19));
        assert_eq!(major("Ubuntu clang version 20.1.2 (0ubuntu1)"), Some(20));
        assert_eq!(major("clang version 21.0.0git (https://github.com/llvm/llvm-project)"), Some(21));
        assert_eq!(major("gcc (Debian 12.2.0-14+deb12u1) 12.2.0"), None);
    }

    #[test]
    fn the_default_is_a_compiler_of_the_recipe() {
        assert_eq!(default_compiler().to_string(), "clang-19");
        assert!(check_compiler(&Compiler::default()).unwrap_err().to_string().contains("Clang 19 or later"));
    }
}
