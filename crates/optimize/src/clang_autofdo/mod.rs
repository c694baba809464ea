//! Recipe `clang-autofdo`: exact counts of the production kernel, used with `-fprofile-sample-use`.
//!
//! AutoFDO after D. Chen, D. X. Li, T. Moseley: "AutoFDO: Automatic Feedback-Directed Optimization
//! for Warehouse-Scale Applications" (CGO 2016). There a CPU samples its last branches (LBR); here
//! the emulator counts every one of them, so that neither an instrumented kernel nor a PMU is
//! needed.
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`base_request`] | build request: the plain kernel, with the debug information that maps its addresses to the source |
//! | 2 | [`prepare_profile`] | [`AutofdoProfile`]: Clang's profile from a recording of that kernel with edges |
//! | 3 | [`tuned_request`] | build request: the same kernel with the profile |
//! | 4 | [`prove`] | [`AutofdoProof`]: evidence that the profile was used |
//!
//! The caller records the training run between steps 1 and 2. Only marked regions are recorded,
//! which excludes boot: its loops that wait and unpack would be the hottest of all.
//!
//! Clang matches counts to code by a function's name, by lines relative to its beginning, and
//! within a line by discriminators, including those of machine code (FS-AFDO). Static functions of
//! one name share their counts.

mod absent_sources;
mod build_log;
mod compiler;
mod flags;
mod functions;
mod image;
mod module_code;
mod modules;
mod prepare;
pub(crate) mod probe;
mod profile;
mod proof;
mod request;
#[cfg(test)]
pub(crate) mod test_program;
mod verdict;

pub use absent_sources::AbsentSources;
pub use compiler::{check_compiler, check_thin_lto, default_compiler};
pub(crate) use flags::SPLIT_BY_LINKER;
pub use functions::ExecutedFunction;
pub use image::HotCodeEvidence;
pub use module_code::HotModuleCode;
pub use prepare::prepare_profile;
pub use profile::{AutofdoProfile, AutofdoSummary, ModuleSamples};
pub use proof::{prove, AutofdoProof};
pub(crate) use request::request_with;
pub use request::{base_request, tuned_request, LinkMode};
pub use verdict::{MIN_APPLIED_SHARE, MIN_FUNCTION_SHARE, MIN_IN_FRONT};

pub use crate::debug_info::{check_kernel, check_line_tables};
use crate::Requirement;

/// Name of the recipe.
pub const NAME: &str = crate::llvm::RECIPE;

/// Requirements of the recipe.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "Clang 19 or later and lld",
        why: "builds the kernel and compiles the counts in",
        fix: "apt-get install clang-19 lld-19, or a later version of both",
    },
    Requirement {
        what: "llvm-profgen and llvm-profdata of the same version",
        why: "lead counts of addresses back to lines of the source",
        fix: "apt-get install llvm-19, or the compiler's version",
    },
];

pub(crate) fn read_log(text: &str) {
    let _ = build_log::ClangLog::parse(text);
}
