//! The ways to turn a profile into a kernel.

use crate::{clang_autofdo, gcc_pgo, layout, Error, Result};
use kerntune_kernel::Compiler;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way to turn a profile into a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Arc counters of a gcov kernel, compiled in with GCC's `-fprofile-use`; see [`gcc_pgo`].
    GccPgo,
    /// Exact counts of the production kernel, compiled in with Clang's `-fprofile-sample-use`; see
    /// [`clang_autofdo`].
    ClangAutofdo,
    /// The same objects in another order; see [`layout`].
    Layout,
    /// [`Recipe::GccPgo`], and then [`Recipe::Layout`] by a recording of what came out.
    #[serde(rename = "gcc-pgo+layout")]
    GccPgoLayout,
    /// [`Recipe::ClangAutofdo`], and then [`Recipe::Layout`] by a recording of what came out.
    #[serde(rename = "clang-autofdo+layout")]
    ClangAutofdoLayout,
}

/// Something that a recipe cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// What has to be there.
    pub what: &'static str,
    /// What for.
    pub why: &'static str,
    /// How to get it, a command where there is one.
    pub mend: &'static str,
}

impl Recipe {
    /// Every recipe.
    pub const ALL: &'static [Recipe] = &[
        Recipe::GccPgo,
        Recipe::ClangAutofdo,
        Recipe::Layout,
        Recipe::GccPgoLayout,
        Recipe::ClangAutofdoLayout,
    ];

    /// The name on the command line and in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::GccPgo => gcc_pgo::NAME,
            Recipe::ClangAutofdo => clang_autofdo::NAME,
            Recipe::Layout => layout::NAME,
            Recipe::GccPgoLayout => "gcc-pgo+layout",
            Recipe::ClangAutofdoLayout => "clang-autofdo+layout",
        }
    }

    /// What it does, in one sentence.
    pub fn about(self) -> &'static str {
        match self {
            Recipe::GccPgo => {
                "trains a gcov kernel on the workload and rebuilds with the counters of its branches (GCC)"
            }
            Recipe::ClangAutofdo => {
                "records which code of the plain kernel the workload runs and rebuilds with these counts (Clang)"
            }
            Recipe::Layout => {
                "records who calls whom and links the same objects with functions that do next to each other"
            }
            Recipe::GccPgoLayout => "gcc-pgo, and then layout by a recording of the kernel that came out",
            Recipe::ClangAutofdoLayout => "clang-autofdo, and then layout by a recording of the kernel that came out",
        }
    }

    /// What it cannot do without.
    pub fn requirements(self) -> &'static [Requirement] {
        match self {
            Recipe::GccPgo | Recipe::GccPgoLayout => gcc_pgo::REQUIREMENTS,
            Recipe::ClangAutofdo | Recipe::ClangAutofdoLayout => clang_autofdo::REQUIREMENTS,
            Recipe::Layout => layout::REQUIREMENTS,
        }
    }

    /// The compiler to take where none is named.
    pub fn default_compiler(self) -> Compiler {
        match self {
            Recipe::GccPgo | Recipe::GccPgoLayout | Recipe::Layout => Compiler::default(),
            Recipe::ClangAutofdo | Recipe::ClangAutofdoLayout => clang_autofdo::default_compiler(),
        }
    }

    /// Whether `compiler`, as it is installed, can carry the recipe out.
    ///
    /// # Errors
    /// [`Error::Compiler`] with what it needs instead; an absent compiler as
    /// [`Compiler::identify`] reports it.
    pub fn check_compiler(self, compiler: &Compiler) -> Result<()> {
        match self {
            Recipe::GccPgo | Recipe::GccPgoLayout => gcc_pgo::check_compiler(compiler),
            Recipe::ClangAutofdo | Recipe::ClangAutofdoLayout => clang_autofdo::check_compiler(compiler),
            // Any that builds a kernel.
            Recipe::Layout => Ok(compiler.identify().map(drop)?),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Recipe {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|r| r.name() == given).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|r| r.name()).collect();
            let verb = if names.len() == 1 { "is" } else { "are" };
            Error::UnknownRecipe { given: given.into(), known: format!("{verb} {}", names.join(", ")) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for recipe in Recipe::ALL {
            assert_eq!(recipe.name().parse::<Recipe>().unwrap(), *recipe);
            assert!(!recipe.requirements().is_empty() && !recipe.about().is_empty());
        }
        let error = "bolt2".parse::<Recipe>().unwrap_err().to_string();
        assert_eq!(error, "no recipe `bolt2`; there are gcc-pgo, clang-autofdo, layout, gcc-pgo+layout, clang-autofdo+layout");
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
