//! What each recipe cannot do without: programs, and a compiler.

use crate::{bolt, clang_autofdo, gcc_pgo, layout, Recipe, Requirement, Result};
use kerntune_kernel::Compiler;

/// Whose profile it is that a recipe compiles in.
enum Family {
    Gcc,
    Clang,
    /// None: any compiler that builds a kernel.
    Any,
    /// The same, and LLVM's BOLT.
    Bolt,
}

impl Recipe {
    /// What it cannot do without.
    pub fn requirements(self) -> &'static [Requirement] {
        match self.family() {
            Family::Gcc => gcc_pgo::REQUIREMENTS,
            Family::Clang => clang_autofdo::REQUIREMENTS,
            Family::Any => layout::REQUIREMENTS,
            Family::Bolt => bolt::REQUIREMENTS,
        }
    }

    /// The compiler to take where none is named.
    pub fn default_compiler(self) -> Compiler {
        match self.family() {
            Family::Gcc | Family::Any | Family::Bolt => Compiler::default(),
            Family::Clang => clang_autofdo::default_compiler(),
        }
    }

    /// Whether `compiler`, as it is installed, can carry the recipe out.
    ///
    /// # Errors
    /// [`Error::Compiler`](crate::Error::Compiler) with what it needs instead; an absent compiler as
    /// [`Compiler::identify`] reports it.
    pub fn check_compiler(self, compiler: &Compiler) -> Result<()> {
        match self.family() {
            Family::Gcc => gcc_pgo::check_compiler(compiler),
            Family::Clang => clang_autofdo::check_compiler(compiler),
            Family::Any => Ok(compiler.identify().map(drop)?),
            Family::Bolt => {
                compiler.identify()?;
                bolt::Bolt::find().map(drop)
            }
        }
    }

    fn family(self) -> Family {
        match self {
            Recipe::GccPgo | Recipe::GccPgoLayout | Recipe::StockGcov => Family::Gcc,
            Recipe::ClangAutofdo
            | Recipe::ClangAutofdoLayout
            | Recipe::ClangAutofdoThinlto
            | Recipe::ClangAutofdoThinltoLayout
            | Recipe::ClangAutofdoPropeller
            | Recipe::ClangAutofdoThinltoPropeller
            | Recipe::StockAutofdo
            | Recipe::StockLldOrder => Family::Clang,
            Recipe::Layout => Family::Any,
            Recipe::Bolt => Family::Bolt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_needs_something() {
        assert!(Recipe::ALL.iter().all(|recipe| !recipe.requirements().is_empty()));
    }

    #[test]
    fn clang_is_told_what_the_recipe_needs() {
        Recipe::GccPgo.check_compiler(&Compiler::default()).unwrap();
        let clang = Compiler::Clang { llvm: "-19".into() };
        let error = Recipe::GccPgo.check_compiler(&clang).unwrap_err().to_string();
        assert!(error.contains("clang-19") && error.contains("GCC 12"), "{error}");
        let error = Recipe::ClangAutofdo.check_compiler(&Compiler::default()).unwrap_err().to_string();
        assert!(error.contains("gcc") && error.contains("Clang 19"), "{error}");
    }
}
