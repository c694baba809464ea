//! Verdict on a build of the user's own.

use super::OwnBuild;
use crate::ProofRefusal;

/// Least share of what the hot functions ran that must be of functions in the image.
pub const MIN_FOUND: f64 = 0.5;

/// Least share of the pairs of a hot function and one that never ran that must be the same way
/// round. Without a profile about half are.
pub const MIN_APART: f64 = 0.65;

/// Least difference of that share from the recorded kernel's.
const MIN_CHANGE: f64 = 0.05;

impl OwnBuild {
    /// Checks that hot functions stand apart from those that never ran.
    ///
    /// # Errors
    /// [`ProofRefusal`] with every reason: too few of the hot functions are in the image, or they
    /// stand among the others as without a profile.
    pub fn verdict(&self) -> Result<(), ProofRefusal> {
        let reasons = [self.not_found(), self.not_apart()];
        ProofRefusal::unless_empty(&self.image, reasons.into_iter().flatten().collect())
    }

    fn not_found(&self) -> Option<String> {
        (self.found_share < MIN_FOUND).then(|| {
            format!(
                "{} of the {} hot functions are in it by name, with {:.1} % of what they ran ({:.0} % are needed): it is of \
                 another source or configuration, or stripped; give the vmlinux at the top of the build directory",
                self.found,
                self.hot,
                self.found_share * 100.0,
                MIN_FOUND * 100.0
            )
        })
    }

    fn not_apart(&self) -> Option<String> {
        let [before, after] = self.in_front;
        let apart = self.apart() >= MIN_APART && (after - before).abs() >= MIN_CHANGE;
        (self.found_share >= MIN_FOUND && !apart).then(|| {
            format!(
                "of all pairs of a hot function and one that never ran, the hot one comes first in {:.0} % (recorded kernel: \
                 {:.0} %; {:.0} % are needed): compiler and linker did not take the profile. Compare the command in \
                 kernel/.fork.o.cmd of the build directory with README, and look for warnings about profiles",
                after * 100.0,
                before * 100.0,
                MIN_APART * 100.0
            )
        })
    }
}
