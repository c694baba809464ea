//! Recipe `gcc-pgo`: arc and value counters of a gcov kernel, used with `-fprofile-use`.
//!
//! After P. Yuan, Y. Guo, X. Chen: "Experiences in Profile-Guided Operating System Kernel
//! Optimization" (APSys 2014): arcs with the kernel's own gcov; value counters for kernels with
//! [`ValuePatches`].
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`instrumented_request`] | build request: the gcov kernel with its [`Exclusions`] |
//! | 2 | [`prepare_profile`] | [`GccPgoProfile`]: the training runs' `.gcda`, checked, merged and completed |
//! | 3 | [`tuned_request`] | build request: the kernel with the profile |
//! | 4 | [`prove`] | [`GccPgoProof`]: evidence that the profile was used |
//!
//! The caller runs the workload on the gcov kernel between steps 1 and 2, and copies its debugfs
//! directory `gcov` out.
//!
//! GCC matches counters to functions by object name, by a function's name or source position, and
//! by the shape of its control flow. So the gcov kernel and the tuned kernel must name their
//! sources alike (they do: one imported source), and may differ in configuration only by gcov.

mod build_log;
mod compiler;
mod complete;
mod counts;
mod dispatch;
mod exclude;
mod gcno;
mod image;
mod image_counters;
mod own_build;
mod prepare;
mod probe;
mod profile;
mod promoted_calls;
mod proof;
mod request;
mod value_counts;
mod value_health;
mod values;
mod verdict;

pub use crate::object_counts::{FunctionCounts, ObjectCounts};
pub use build_log::ValueTransforms;
pub use compiler::check_compiler;
pub use exclude::{Exclusion, Exclusions};
pub use image::{ColdCodeEvidence, ColdPlacement};
pub use image_counters::write_counters;
pub use own_build::{counter_files, CounterFiles};
pub use prepare::{check_files, check_profile, prepare_as_exported, prepare_profile, WeightedRun};
pub use profile::{GccPgoProfile, GccPgoSummary};
pub use promoted_calls::{DirectSite, PromotedCallForm};
pub use proof::{prove, GccPgoProof, LostFunction, ValueEvidence};
pub use request::{counted_request, instrumented_request, tuned_request, without_counters, UntrainedCode};
pub use value_counts::{CounterKindSummary, IndirectSite, ValueSummary};
pub use value_health::{ValueHealth, MAX_UNLISTED_SHARE};
pub use values::ValuePatches;
pub use verdict::{MIN_FEEDBACK_SHARE, MIN_IN_FRONT, MIN_MOVED_SHARE};

use crate::Requirement;

/// Name of the recipe.
pub const NAME: &str = "gcc-pgo";
/// Recipe in the manifests of gcov kernels.
pub const INSTRUMENTED: &str = "gcc-pgo/instrumented";

/// Requirements of the recipe.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "GCC 12 to 16",
        why: "one compiler writes the counters, is read by kerntune, and compiles them in",
        fix: "apt-get install gcc",
    },
    Requirement {
        what: "CONFIG_GCOV_KERNEL and CONFIG_GCOV_PROFILE_ALL in the kernel source",
        why: "the training run counts with the kernel's own gcov",
        fix: "use a Linux source for an architecture with ARCH_HAS_GCOV_PROFILE_ALL, such as x86-64",
    },
];

pub(crate) fn read_notes(bytes: &[u8]) {
    let _ = gcno::GcnoFile::parse(bytes);
}

pub(crate) fn read_log(text: &str) {
    let _ = build_log::GccLog::parse(text, "/k/build");
}
