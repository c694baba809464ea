//! Proof that the tuned kernel uses the profile, from the compiler's messages and from the image.

use super::build_log::ClangLog;
use super::module_code::{hot_modules, HotModuleCode};
use super::{AbsentSources, AutofdoProfile, HotCodeEvidence};
use crate::proof::{build_log, write_text_bytes};
use crate::share::{percent, share};
use crate::Result;
use kerntune_kernel::{Kernel, Symbols};
use serde::{Deserialize, Serialize};
use std::fmt;

pub(super) const SCHEMA: &str = "kerntune-clang-autofdo-proof/1";
/// Most functions named.
const MAX_NAMED: usize = 50;

/// Evidence about a tuned kernel. Its [verdict](crate::RecipeProof::verdict) judges it, `Display`
/// writes it as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutofdoProof {
    /// Schema, `kerntune-clang-autofdo-proof/1`.
    pub schema: String,
    /// Label of the tuned kernel.
    pub kernel: String,
    /// Id of the profile that the kernel should be built with.
    pub profile: String,
    /// Id of the profile that the kernel was built with.
    pub built_with: Option<String>,
    /// Executed bytes of code in the training.
    pub executed_bytes: u64,
    /// Executed bytes that the profile has.
    pub attributed_bytes: u64,
    /// C functions that ran in the training.
    pub functions_ran: u64,
    /// C functions that ran and are in the profile.
    pub functions_in_profile: u64,
    /// Counts in source files that this kernel lacks, if the profile was recorded on another kernel
    /// of the same source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<AbsentSources>,
    /// Functions to which Clang reported to have applied samples, including those that are inlined
    /// everywhere else.
    pub functions_applied: u64,
    /// Functions for which Clang found nothing that fits in their profile.
    pub functions_not_applied: u64,
    /// Functions whose profile Clang did not use for lack of debug information, 50 at most.
    pub functions_not_used: Vec<String>,
    /// Samples that the profile has for all functions that Clang compiled.
    pub samples_available: u64,
    /// Samples that were applied before Clang changed the code. Samples at discriminators of
    /// machine code are applied later and not counted here.
    pub samples_applied: u64,
    /// Modules with code that ran, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<HotModuleCode>,
    /// Image of the base kernel.
    pub base: HotCodeEvidence,
    /// Image of the tuned kernel.
    pub tuned: HotCodeEvidence,
}

/// Compares the tuned kernel with its profile and with the base kernel.
///
/// There are two sources of evidence. Clang was asked to report for each function how much of its
/// profile it applied. In the image, hot functions must have moved before those that never ran,
/// which only a compiler that uses the profile does.
///
/// # Errors
/// Files that cannot be read; a bad result is no error here but in the
/// [verdict](crate::RecipeProof::verdict).
pub fn prove(base: &Kernel, profile: &AutofdoProfile, tuned: &Kernel) -> Result<AutofdoProof> {
    let log = ClangLog::parse(&build_log(tuned)?);
    let ran = profile.functions()?;
    let sum = |of: &dyn Fn(&super::build_log::AppliedSamples) -> u64| {
        log.applied.iter().fold(0u64, |sum, applied| sum.saturating_add(of(applied)))
    };
    let applied = log.applied.iter().filter(|applied| applied.used > 0).count() as u64;
    let summary = &profile.summary;
    Ok(AutofdoProof {
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
            false => Some(AbsentSources::of(&profile.kernel, &ran, &base.source_files()?)),
        },
        functions_applied: applied,
        functions_not_applied: log.applied.len() as u64 - applied,
        functions_not_used: log.not_used.iter().take(MAX_NAMED).cloned().collect(),
        samples_available: sum(&|applied| applied.available),
        samples_applied: sum(&|applied| applied.used),
        modules: hot_modules((base, tuned), &summary.modules, &ran)?,
        base: HotCodeEvidence::of(&Symbols::load(&base.vmlinux())?, &ran),
        tuned: HotCodeEvidence::of(&Symbols::load(&tuned.vmlinux())?, &ran),
    })
}

impl AutofdoProof {
    /// Returns the share of the samples that were applied at once, 0 to 1.
    pub fn applied_share(&self) -> f64 {
        share(self.samples_applied, self.samples_available)
    }
}

impl fmt::Display for AutofdoProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        for HotModuleCode { module, attributed, functions, matched, hot_in_front: [before, after], .. } in
            &self.modules
        {
            writeln!(
                f,
                "  module      {module}: {} of what ran is in the profile, {matched} of {functions} functions; hot code in {} → {} \
                 of all pairs first",
                percent(*attributed),
                percent(*before),
                percent(*after)
            )?;
        }
        let (base, tuned) = (&self.base, &self.tuned);
        write_text_bytes(f, base.text_bytes, tuned.text_bytes)?;
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
