//! Verdict on the proof.

use super::{GccPgoProof, ValueTransforms};
use crate::proof::wrong_profile;
use crate::{ProofRefusal, RecipeProof};

/// Least share of the counts that GCC must have matched. Sources and configuration are the same but
/// for gcov, so nearly all match; below this something is wrong with the inputs.
pub const MIN_FEEDBACK_SHARE: f64 = 0.9;

/// Least share of the functions that never ran that must be in the cold code. The others are in
/// parts of `.text` of their own (`noinstr`, `sched`, `kprobes`), which no profile moves.
pub const MIN_MOVED_SHARE: f64 = 0.7;

/// Least share of the pairs of a function that ran often and one that never ran in which the former
/// must come first. Some are in parts of `.text` of their own.
pub const MIN_IN_FRONT: f64 = 0.65;

/// Fewest functions whose placement is evidence.
const MIN_FUNCTIONS: u64 = 20;

impl RecipeProof for GccPgoProof {
    /// Checks that the kernel uses its profile.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason: built with another profile, files without the program
    /// summary, fewer counts matched than [`MIN_FEEDBACK_SHARE`], or an image without a trace of
    /// the profile: no more `.cold` parts than the base kernel and the same amount of code, what ran
    /// less in front than [`MIN_IN_FRONT`], or, in a kernel that is compiled for size where nothing
    /// ran, fewer functions moved than [`MIN_MOVED_SHARE`]; value counters of which nothing was
    /// used.
    fn verdict(&self) -> Result<(), ProofRefusal> {
        let reasons: Vec<String> = [
            wrong_profile(self.built_with.as_deref(), &self.profile),
            self.no_summary(),
            self.few_matched(),
            self.no_trace(),
            self.not_in_front(),
            self.not_moved(),
            self.values_unused(),
        ]
        .into_iter()
        .flatten()
        .collect();
        ProofRefusal::unless_empty(&self.kernel, reasons)
    }
}

impl GccPgoProof {
    fn no_summary(&self) -> Option<String> {
        (self.objects_without_summary > 0).then(|| {
            format!(
                "{} of {} .gcda files have no program summary, and GCC silently ignores such a file: prepare \
                 the profile again",
                self.objects_without_summary, self.objects_with_profile
            )
        })
    }

    fn few_matched(&self) -> Option<String> {
        (self.share_of_counts_matched < MIN_FEEDBACK_SHARE).then(|| {
            let max = self.functions_mismatched.first();
            let max = max.map_or(String::new(), |l| format!(" (most of all those of {} in {})", l.name, l.object));
            format!(
                "only {:.1} % of the counts matched, {:.0} % are needed{max}: the gcov kernel and this one differ in \
                 source, configuration or compiler; build both again from one base and repeat the training",
                self.share_of_counts_matched * 100.0,
                MIN_FEEDBACK_SHARE * 100.0
            )
        })
    }

    fn no_trace(&self) -> Option<String> {
        let (base, tuned) = (&self.base, &self.tuned);
        (tuned.cold_parts <= base.cold_parts && tuned.text_bytes == base.text_bytes).then(|| {
            format!(
                "its code is that of the baseline: {} bytes and {} .cold parts in both. GCC read no usable profile; \
                 look in build.log for \"profile count data file not found\", and prepare the profile again",
                tuned.text_bytes, tuned.cold_parts
            )
        })
    }

    fn not_in_front(&self) -> Option<String> {
        let (base, tuned) = (&self.base, &self.tuned);
        let few = tuned.ran.of < MIN_FUNCTIONS || tuned.never_ran.of < MIN_FUNCTIONS;
        (!few && tuned.ran_in_front < MIN_IN_FRONT).then(|| {
            format!(
                "of all pairs of a function that ran often in the training and one that never ran, the former comes \
                 first in {:.0} % ({:.0} % are needed, the baseline has {:.0} %), so GCC did not know which ones ran: it ignored \
                 the counts. Prepare the profile again and rebuild",
                tuned.ran_in_front * 100.0,
                MIN_IN_FRONT * 100.0,
                base.ran_in_front * 100.0
            )
        })
    }

    fn not_moved(&self) -> Option<String> {
        if self.untrained_as_base {
            return None;
        }
        let moved = self.tuned.never_ran;
        (moved.of >= MIN_FUNCTIONS && moved.share() < MIN_MOVED_SHARE || moved.of < MIN_FUNCTIONS && self.base.never_ran.of >= MIN_FUNCTIONS)
            .then(|| {
                format!(
                    "of {} functions that never ran in the training {} are in the cold code ({:.0} %; {:.0} % are needed, \
                     the baseline has {:.0} %), so GCC did not know that they never ran: it ignored the counts. \
                     Prepare the profile again and rebuild",
                    moved.of,
                    moved.among_cold,
                    moved.share() * 100.0,
                    MIN_MOVED_SHARE * 100.0,
                    self.base.never_ran.share() * 100.0
                )
            })
    }

    /// Returns a refusal if value counters had no effect. GCC may know every usual target and still
    /// keep the indirect calls, as it promotes only calls that it inlines; but then it reports that
    /// it knew them.
    fn values_unused(&self) -> Option<String> {
        let values = self.values.as_ref()?;
        let sites = values.counted.promotable_sites;
        let none = values.transformed == ValueTransforms::default();
        (sites >= MIN_FUNCTIONS && none && values.direct.as_ref().is_some_and(Vec::is_empty)).then(|| {
            format!(
                "indirect calls have a usual target in their own file at {sites} places, and GCC used none, nor any usual \
                 divisor or size: it did not read the value counters. Is -fno-profile-values or -fno-vpt among the flags? \
                 Without values, leave out --values"
            )
        })
    }
}
