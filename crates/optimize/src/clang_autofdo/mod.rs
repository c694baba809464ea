//! Recipe `clang-autofdo`: exact counts of the production kernel, compiled in with `-fprofile-sample-use`.
//!
//! AutoFDO after D. Chen, D. X. Li, T. Moseley: "AutoFDO: Automatic Feedback-Directed Optimization for
//! Warehouse-Scale Applications" (CGO 2016). There a CPU samples its last branches (LBR); here the emulator has
//! counted every one of them, so that neither an instrumented kernel nor a PMU is needed.
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`base_request`] | what to build: the plain kernel, with what leads its addresses back to the source |
//! | 2 | [`prepare_profile`] | [`PreparedProfile`]: a recording with edges of that kernel, as Clang takes it |
//! | 3 | [`tuned_request`] | what to build: the same kernel with the profile |
//! | 4 | [`prove`] | [`Proof`], with [`Proof::verdict`]: whether the profile took |
//!
//! Between 1 and 2 somebody records the training run. Marked regions only are recorded, which keeps boot
//! out: its loops that wait and unpack would be the hottest of all.
//!
//! Clang matches counts to code by a function's name and by lines from its beginning, and what is at
//! one line by discriminators, those of machine code among them (FS-AFDO). Static functions of one name share
//! their counts.

mod build_log;
mod compiler;
mod elsewhere;
mod functions;
mod image;
mod prepare;
mod profile;
mod proof;
mod request;
#[cfg(test)]
pub(crate) mod test_program;
mod verdict;

pub use compiler::{check_compiler, default_compiler};
pub use elsewhere::Elsewhere;
pub use functions::RanFunction;
pub use image::ImageEvidence;
pub use prepare::prepare_profile;
pub use profile::{PreparedProfile, ProfileSummary};
pub use proof::{prove, Proof};
pub use request::{base_request, tuned_request, Link};
pub(crate) use request::{request_with, SPLIT_BY_LINKER};
pub use verdict::{MIN_APPLIED_SHARE, MIN_FUNCTION_SHARE, MIN_IN_FRONT};

pub use crate::debug_info::{line_tables, takes};
use crate::Requirement;

/// The recipe's name.
pub const NAME: &str = crate::llvm::RECIPE;

/// What the recipe cannot do without.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "Clang 19 or later and lld",
        why: "builds the kernel and compiles the counts in",
        mend: "apt-get install clang-19 lld-19",
    },
    Requirement {
        what: "llvm-profgen and llvm-profdata of the same version",
        why: "lead counts of addresses back to lines of the source",
        mend: "apt-get install llvm-19",
    },
];

pub(crate) fn read_log(text: &str) {
    let _ = build_log::BuildLog::parse(text);
}
