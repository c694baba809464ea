//! The ways to turn a profile into a kernel.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way to turn a profile into a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Arc counters of a gcov kernel, compiled in with GCC's `-fprofile-use`; see [`gcc_pgo`](crate::gcc_pgo).
    GccPgo,
    /// Exact counts of the production kernel, compiled in with Clang's `-fprofile-sample-use`; see
    /// [`clang_autofdo`](crate::clang_autofdo).
    ClangAutofdo,
    /// The same objects in another order; see [`layout`](crate::layout).
    Layout,
    /// [`Recipe::GccPgo`], and then [`Recipe::Layout`] by a recording of what came out.
    #[serde(rename = "gcc-pgo+layout")]
    GccPgoLayout,
    /// [`Recipe::ClangAutofdo`], and then [`Recipe::Layout`] by a recording of what came out.
    #[serde(rename = "clang-autofdo+layout")]
    ClangAutofdoLayout,
    /// [`Recipe::ClangAutofdo`] with code made when all objects are at hand (ThinLTO).
    #[serde(rename = "clang-autofdo+thinlto")]
    ClangAutofdoThinlto,
    /// [`Recipe::ClangAutofdoThinlto`], and then [`Recipe::Layout`] by a recording of what came out.
    #[serde(rename = "clang-autofdo+thinlto+layout")]
    ClangAutofdoThinltoLayout,
    /// [`Recipe::ClangAutofdo`], then the blocks of each function in order by a recording of what came out, and then
    /// [`Recipe::Layout`] by another one; see [`propeller`](crate::propeller).
    #[serde(rename = "clang-autofdo+propeller")]
    ClangAutofdoPropeller,
    /// The same after [`Recipe::ClangAutofdoThinlto`].
    #[serde(rename = "clang-autofdo+thinlto+propeller")]
    ClangAutofdoThinltoPropeller,
    /// The linked kernel with the blocks of each function in another order; see [`bolt`](crate::bolt).
    Bolt,
    /// gcov counters as the kernel exports them, without the summary that GCC wants.
    StockGcov,
    /// AutoFDO with the flags and the link of Linux 6.13's Kbuild.
    StockAutofdo,
    /// AutoFDO with functions ordered by lld's own sort.
    StockLldOrder,
}

impl Recipe {
    /// Every recipe.
    pub const ALL: &'static [Recipe] = &[
        Recipe::GccPgo,
        Recipe::ClangAutofdo,
        Recipe::Layout,
        Recipe::GccPgoLayout,
        Recipe::ClangAutofdoLayout,
        Recipe::ClangAutofdoThinlto,
        Recipe::ClangAutofdoThinltoLayout,
        Recipe::ClangAutofdoPropeller,
        Recipe::ClangAutofdoThinltoPropeller,
        Recipe::Bolt,
        Recipe::StockGcov,
        Recipe::StockAutofdo,
        Recipe::StockLldOrder,
    ];

    /// Whether it is a way as others go it, by the book: there to be compared with. Its kernel is not refused
    /// where its profile did not take, since its book does not ask.
    pub fn is_stock(self) -> bool {
        matches!(self, Recipe::StockGcov | Recipe::StockAutofdo | Recipe::StockLldOrder)
    }

    /// The name on the command line and in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Recipe::GccPgo => "gcc-pgo",
            Recipe::ClangAutofdo => "clang-autofdo",
            Recipe::Layout => "layout",
            Recipe::GccPgoLayout => "gcc-pgo+layout",
            Recipe::ClangAutofdoLayout => "clang-autofdo+layout",
            Recipe::ClangAutofdoThinlto => "clang-autofdo+thinlto",
            Recipe::ClangAutofdoThinltoLayout => "clang-autofdo+thinlto+layout",
            Recipe::ClangAutofdoPropeller => "clang-autofdo+propeller",
            Recipe::ClangAutofdoThinltoPropeller => "clang-autofdo+thinlto+propeller",
            Recipe::Bolt => "bolt",
            Recipe::StockGcov => "stock-gcov",
            Recipe::StockAutofdo => "stock-autofdo",
            Recipe::StockLldOrder => "stock-lld-order",
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
            Recipe::ClangAutofdoThinlto => "clang-autofdo with hot functions inlined across objects (ThinLTO)",
            Recipe::ClangAutofdoThinltoLayout => {
                "clang-autofdo+thinlto, and then layout by a recording of the kernel that came out"
            }
            Recipe::ClangAutofdoPropeller => {
                "clang-autofdo, then the blocks of each function in order and what never ran split off, then layout"
            }
            Recipe::ClangAutofdoThinltoPropeller => {
                "clang-autofdo+thinlto, then the blocks of each function in order, then layout"
            }
            Recipe::Bolt => {
                "records which code of the plain kernel the workload runs and rewrites the linked image with LLVM's BOLT"
            }
            Recipe::StockGcov => "to compare with: GCC with the counters as gcov exports them, without a summary",
            Recipe::StockAutofdo => "to compare with: AutoFDO with the flags and the link of Linux 6.13's Kbuild",
            Recipe::StockLldOrder => "to compare with: clang-autofdo with functions in the order of lld's own sort",
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
            assert_eq!(serde_json::to_value(recipe).unwrap(), recipe.name());
            assert_eq!(recipe.is_stock(), recipe.name().starts_with("stock-"));
            assert!(!recipe.about().is_empty());
        }
        let error = "bolt2".parse::<Recipe>().unwrap_err().to_string();
        assert!(
            error
                .starts_with("no recipe `bolt2`; there are gcc-pgo, clang-autofdo, layout, gcc-pgo+layout, "),
            "{error}"
        );
    }
}
