//! Recipe `gcc-pgo`: arc and value counters of a gcov kernel, compiled in with `-fprofile-use`.
//!
//! After P. Yuan, Y. Guo, X. Chen: "Experiences in Profile-Guided Operating System Kernel
//! Optimization" (APSys 2014): arcs with the kernel's own gcov; [`Values`] where there are patches for it.
//!
//! | step | function | result |
//! |---|---|---|
//! | 1 | [`instrumented_request`] | what to build: the gcov kernel, its [`Exclusions`] applied |
//! | 2 | [`prepare_profile`] | [`PreparedProfile`]: the training runs' `.gcda`, checked, merged and completed |
//! | 3 | [`tuned_request`] | what to build: the kernel with the profile |
//! | 4 | [`prove`] | [`Proof`], with [`Proof::verdict`]: whether the profile took |
//!
//! Between 1 and 2 somebody runs the workload on the gcov kernel and brings its debugfs `gcov`
//! directory out.
//!
//! GCC matches counters to functions by object name, by a function's name or source position, and
//! by the shape of its control flow. So the gcov kernel and the tuned kernel have to name their
//! sources alike (they do: one imported source) and to be of one configuration but for gcov.

mod build_log;
mod compiler;
mod complete;
mod counts;
mod exclude;
mod gcno;
mod image;
mod prepare;
mod profile;
mod proof;
mod request;
mod specialised;
mod value_counts;
mod value_health;
mod values;
mod verdict;

pub use crate::object_counts::{FunctionCounts, ObjectCounts};
pub use build_log::Transformed;
pub use compiler::check_compiler;
pub use exclude::{Exclusion, Exclusions};
pub use image::{ImageEvidence, Placement};
pub use prepare::{check_files, check_profile, prepare_as_exported, prepare_profile};
pub use profile::{PreparedProfile, ProfileSummary};
pub use proof::{prove, LostFunction, Proof, ValueEvidence};
pub use request::{instrumented_request, tuned_request, without_counters};
pub use specialised::{DirectSite, Then};
pub use value_counts::{IndirectSite, KindSummary, ValueSummary};
pub use value_health::{ValueHealth, MAX_UNLISTED_SHARE};
pub use values::Values;
pub use verdict::{MIN_FEEDBACK_SHARE, MIN_MOVED_SHARE};

use crate::Requirement;

/// The recipe's name.
pub const NAME: &str = "gcc-pgo";
/// What manifests of gcov kernels say.
pub const INSTRUMENTED: &str = "gcc-pgo/instrumented";

/// What the recipe cannot do without.
pub const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        what: "GCC 12 to 15",
        why: "one compiler writes the counters, is read by kerntune, and compiles them in",
        mend: "apt-get install gcc",
    },
    Requirement {
        what: "CONFIG_GCOV_KERNEL and CONFIG_GCOV_PROFILE_ALL in the kernel source",
        why: "the training run counts with the kernel's own gcov",
        mend: "use a Linux source for an architecture with ARCH_HAS_GCOV_PROFILE_ALL, such as x86-64",
    },
];

pub(crate) fn read_notes(bytes: &[u8]) {
    let _ = gcno::Notes::parse(bytes);
}

pub(crate) fn read_log(text: &str) {
    let _ = build_log::BuildLog::parse(text, "/k/build");
}
