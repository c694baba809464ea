//! Verdict on the proof.

use super::AutofdoProof;
use crate::proof::wrong_profile;
use crate::{ProofRefusal, RecipeProof};

/// Least number of functions to which Clang must have applied samples, as a share of the executed C
/// functions in the profile. Sources and flags are the same, so nearly all qualify.
pub const MIN_FUNCTION_SHARE: f64 = 0.8;

/// Least share of the samples that must have been applied at once. Samples at discriminators of
/// machine code are applied later, so good builds, too, are far below 1.
pub const MIN_APPLIED_SHARE: f64 = 0.4;

/// Least share of the pairs of a hot function and one that never ran in which the hot one must come
/// first. Some hot functions are in parts of `.text` of their own (`noinstr`, `sched`), which no
/// profile moves.
pub const MIN_IN_FRONT: f64 = 0.75;

/// Fewest hot functions whose placement is evidence.
const MIN_FUNCTIONS: u64 = 20;

impl RecipeProof for AutofdoProof {
    /// Checks that the kernel uses its profile.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason: built with another profile, samples applied to fewer
    /// functions than [`MIN_FUNCTION_SHARE`], fewer samples applied than [`MIN_APPLIED_SHARE`], or
    /// an image without a trace of the profile: the same code as the base kernel, or hot functions
    /// less in front than [`MIN_IN_FRONT`].
    fn verdict(&self) -> Result<(), ProofRefusal> {
        let reasons = [
            wrong_profile(self.built_with.as_deref(), &self.profile),
            self.few_functions(),
            self.few_samples(),
            self.no_trace(),
            self.not_moved(),
        ];
        ProofRefusal::unless_empty(&self.kernel, reasons.into_iter().flatten().collect())
    }
}

impl AutofdoProof {
    fn few_functions(&self) -> Option<String> {
        // Counts in files of another kernel cannot be applied here.
        let absent = self.elsewhere.as_ref().map_or(0, |elsewhere| elsewhere.functions);
        let possible = self.functions_in_profile.saturating_sub(absent);
        let needed = possible as f64 * MIN_FUNCTION_SHARE;
        ((self.functions_applied as f64) < needed || self.functions_applied == 0).then(|| {
            format!(
                "Clang applied samples to {} functions, where {} ran in the training and are in the profile ({:.0} % are \
                 needed): base and tuned kernel differ in source, configuration or flags, or Clang read no profile; \
                 look in build.log for \"available profile samples\", and build both again",
                self.functions_applied,
                possible,
                MIN_FUNCTION_SHARE * 100.0
            )
        })
    }

    fn few_samples(&self) -> Option<String> {
        (self.functions_applied > 0 && self.applied_share() < MIN_APPLIED_SHARE).then(|| {
            format!(
                "only {:.1} % of the samples found their place, {:.0} % are needed: the source is another than the one \
                 that was recorded; build the base kernel again and repeat the training",
                self.applied_share() * 100.0,
                MIN_APPLIED_SHARE * 100.0
            )
        })
    }

    fn no_trace(&self) -> Option<String> {
        let (base, tuned) = (&self.base, &self.tuned);
        (base.text_bytes == tuned.text_bytes && base.functions == tuned.functions).then(|| {
            format!(
                "its code is that of the baseline: {} bytes in {} functions in both, so Clang did nothing with the profile",
                tuned.text_bytes, tuned.functions
            )
        })
    }

    fn not_moved(&self) -> Option<String> {
        let tuned = &self.tuned;
        (self.base.hot >= MIN_FUNCTIONS && (tuned.hot == 0 || tuned.hot_in_front < MIN_IN_FRONT)).then(|| {
            format!(
                "of all pairs of a hot function and one that never ran, the hot one comes first in {:.0} % ({:.0} % are \
                 needed, the baseline has {:.0} %): Clang did not know which functions are hot",
                tuned.hot_in_front * 100.0,
                MIN_IN_FRONT * 100.0,
                self.base.hot_in_front * 100.0
            )
        })
    }
}
