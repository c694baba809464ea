//! Whether the profile is in the tuned kernel: the compiler's word, and the image's.

use super::build_log::BuildLog;
use super::profile::share;
use super::{Elsewhere, ImageEvidence, PreparedProfile};
use crate::Result;
use kerntune_kernel::{Kernel, Symbols};
use kerntune_work::IoContext;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::Path;

pub(super) const SCHEMA: &str = "kerntune-clang-autofdo-proof/1";
/// How many functions are named.
const NAMED: usize = 50;

/// What was found out about a tuned kernel. [`Proof::verdict`] judges it, `Display` tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// `kerntune-clang-autofdo-proof/1`.
    pub schema: String,
    /// Label of the tuned kernel.
    pub kernel: String,
    /// Id of the profile that it should carry.
    pub profile: String,
    /// Id of the profile that it was built with.
    pub built_with: Option<String>,
    /// Bytes of code that ran in the training, each as often as it ran.
    pub executed_bytes: u64,
    /// Of them those that the profile has.
    pub attributed_bytes: u64,
    /// Functions in C that ran in the training.
    pub functions_ran: u64,
    /// Of them those that the profile has.
    pub functions_in_profile: u64,
    /// Where the profile was recorded on another kernel of the same source: what of it has nowhere to go in this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// Functions that Clang said it applied samples to, those that are inlined everywhere but here included.
    pub functions_applied: u64,
    /// Functions in whose profile Clang found nothing that fits.
    pub functions_not_applied: u64,
    /// Functions whose profile Clang put aside for want of debug information, 50 at most.
    pub functions_not_used: Vec<String>,
    /// Samples that the profile has for all functions that Clang looked at.
    pub samples_available: u64,
    /// Of them those that found their place before Clang changed the code; discriminators of machine code
    /// find theirs later and are not in it.
    pub samples_applied: u64,
    /// The baseline's image.
    pub base: ImageEvidence,
    /// The tuned kernel's image.
    pub tuned: ImageEvidence,
}

/// Compares the tuned kernel with its profile and its baseline. `build_log` is the log of the tuned build.
///
/// Two witnesses are heard. Clang, which was asked to say for each function how much of its profile it applied.
/// And the image: hot functions must have moved before those that never ran, which no compiler does that
/// ignored the profile.
///
/// # Errors
/// Files that cannot be read; a bad result is no error here but in [`Proof::verdict`].
pub fn prove(base: &Kernel, profile: &PreparedProfile, tuned: &Kernel, build_log: &Path) -> Result<Proof> {
    let text = fs::read(build_log).at("read build log", build_log)?;
    let log = BuildLog::parse(&String::from_utf8_lossy(&text));
    let ran = profile.functions()?;
    let sum = |of: &dyn Fn(&super::build_log::Applied) -> u64| {
        log.applied.iter().fold(0u64, |sum, applied| sum.saturating_add(of(applied)))
    };
    let applied = log.applied.iter().filter(|applied| applied.used > 0).count() as u64;
    let summary = &profile.summary;
    Ok(Proof {
        schema: SCHEMA.into(),
        kernel: tuned.manifest.label.clone(),
        profile: profile.id.clone(),
        built_with: tuned.built_with(&profile.id, &profile.tree())?,
        executed_bytes: summary.executed_bytes,
        attributed_bytes: summary.attributed_bytes,
        functions_ran: summary.c_functions,
        functions_in_profile: summary.matched_functions,
        elsewhere: match profile.kernel == base.manifest.id {
            true => None,
            false => Some(Elsewhere::of(&profile.kernel, &ran, &base.source_files()?)),
        },
        functions_applied: applied,
        functions_not_applied: log.applied.len() as u64 - applied,
        functions_not_used: log.not_used.iter().take(NAMED).cloned().collect(),
        samples_available: sum(&|applied| applied.available),
        samples_applied: sum(&|applied| applied.used),
        base: ImageEvidence::of(&Symbols::load(&base.vmlinux())?, &ran),
        tuned: ImageEvidence::of(&Symbols::load(&tuned.vmlinux())?, &ran),
    })
}

impl Proof {
    /// The share of the samples that found their place at once, 0 to 1.
    pub fn applied_share(&self) -> f64 {
        share(self.samples_applied, self.samples_available)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        writeln!(f, "Profile {} in kernel {}", self.profile, self.kernel)?;
        writeln!(
            f,
            "  recorded    {} of what ran is in the profile, {} of {} functions in C of the image",
            percent(share(self.attributed_bytes, self.executed_bytes)),
            self.functions_in_profile,
            self.functions_ran
        )?;
        if let Some(elsewhere) = &self.elsewhere {
            writeln!(
                f,
                "  elsewhere   {} of what ran is of files that this kernel does not have, with {} of these functions: {} …",
                percent(elsewhere.share()),
                elsewhere.functions,
                elsewhere.files.iter().take(4).cloned().collect::<Vec<_>>().join(", ")
            )?;
        }
        writeln!(
            f,
            "  applied     to {} functions of the source, inlined ones counted, and to {} not",
            self.functions_applied,
            self.functions_not_applied + self.functions_not_used.len() as u64
        )?;
        for name in self.functions_not_used.iter().take(5) {
            writeln!(f, "              not used: {name} (no debug information)")?;
        }
        writeln!(f, "  samples     {} found their place at once", percent(self.applied_share()))?;
        let (base, tuned) = (&self.base, &self.tuned);
        let change = 100.0 * (tuned.text_bytes as f64 / base.text_bytes.max(1) as f64 - 1.0);
        writeln!(f, "  text        {} → {} bytes ({change:+.1} %)", base.text_bytes, tuned.text_bytes)?;
        writeln!(f, "  functions   {} → {} in the image", base.functions, tuned.functions)?;
        write!(
            f,
            "  hot code    in {} → {} of all pairs it comes before code that never ran",
            percent(base.hot_in_front),
            percent(tuned.hot_in_front)
        )
    }
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
