//! Figures of the gate, and its verdict.

use super::{HotOverlap, LossReason, MatchedCode, TransferScore};
use crate::share::{percent, share};
use kerntune_profile::{Anomaly, KernelId, Manifest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Least share of the kernel's executed instructions that must have counts. The emulator counts
/// every instruction, so nearly all have; below this, something was lost.
pub const MIN_COVERAGE: f64 = 0.9;

/// Least share of the executed instructions, in per cent, that must have a place in another kernel.
/// Below it, more of the time is spent in code without counts than in code with counts.
pub const MIN_TRANSFERRED_PERCENT: u64 = 50;

/// Least overlap of the 90 % hot sets of two halves of a training. Below it, most of what is hot in
/// one half is not hot in the other.
pub const MIN_OVERLAP: f64 = 0.5;

/// Overlap below which the gate warns that the halves do different work. Two runs of one training
/// have 99 %, two workloads have 65 % (docs/quality.md).
pub const STEADY_OVERLAP: f64 = 0.8;

/// Largest accepted share of runs between two sampled branches that do not fit the kernel's code.
pub const MAX_STRANGE_RUNS: f64 = 0.05;

/// Fewest instructions of a useful training: a millisecond of an emulated CPU.
pub const MIN_INSTRUCTIONS: u64 = 1_000_000;

/// Fewest samples of a profile of sampled instructions. With fewer, less than half of the functions that
/// ran have a count (docs/quality.md).
pub const MIN_INSTRUCTION_SAMPLES: u64 = 10_000;

/// Most lost functions named in the output.
const MAX_NAMED: usize = 10;

/// Finding of the gate: a refusal or a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFinding {
    /// Name of the check: `counts`, `training`, `overflow`, `kernel`, `coverage`, `branches`,
    /// `cpus`, `runs`, `blocks`, `halves` or `recipe`.
    pub check: String,
    /// True if the profile is refused for it; otherwise it is a warning.
    pub refused: bool,
    /// Description of the finding.
    pub found: String,
    /// Advice how to fix it.
    #[serde(rename = "mend")]
    pub fix: String,
}

impl GateFinding {
    /// Creates a finding for which the profile is refused.
    pub fn refused(check: &str, found: String, fix: String) -> Self {
        Self { check: check.into(), refused: true, found, fix }
    }

    pub(super) fn warning(check: &str, found: String, fix: String) -> Self {
        Self { refused: false, ..Self::refused(check, found, fix) }
    }
}

impl fmt::Display for GateFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.found, self.fix)
    }
}

/// Formats a kernel for messages.
pub(super) fn named(kernel: &KernelId) -> String {
    format!("{} ({})", kernel.label, kernel.id)
}

/// Unit of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountUnit {
    /// Executed instructions, in recordings.
    Instructions,
    /// Taken arcs of the control flow, in counters of an instrumented kernel.
    Arcs,
    /// Calls of functions, in profiles with counted calls.
    Calls,
    /// Samples with a function on their stack, summed over functions, in profiles with call chains.
    Samples,
}

impl CountUnit {
    /// Returns whether the profile has calls between functions and no blocks.
    fn is_of_calls(self) -> bool {
        matches!(self, Self::Calls | Self::Samples)
    }
}

impl fmt::Display for CountUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CountUnit::Instructions => "instructions",
            CountUnit::Arcs => "taken arcs",
            CountUnit::Calls => "calls",
            CountUnit::Samples => "samples",
        })
    }
}

/// Fitness of a recording for a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileQuality {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Id of the recording.
    pub profile: String,
    /// Kernel that was recorded.
    pub recorded: KernelId,
    /// Kernel that the recording is to be used for.
    pub kernel: KernelId,
    /// Recipe that the recording is to be used for, if any.
    pub recipe: Option<String>,
    /// Unit of all figures except functions, blocks and branches.
    pub unit: CountUnit,
    /// Instructions that the kernel executed in the recording's regions; `None` if the recording
    /// lacks them.
    pub executed: Option<u64>,
    /// Instructions, or taken arcs, with counts.
    pub counted: u64,
    /// Bytes of the image's functions, and of those in source files with counters; `None` for
    /// recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<[u64; 2]>,
    /// Share of the executed instructions with counts, 0 to 1; for a transferred profile the share
    /// that remained after the transfer.
    pub coverage: Option<f64>,
    /// Branches that the kernel took in the recording's regions, and branches with counts. `None`
    /// if the recording lacks them, and for a transferred profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<[u64; 2]>,
    /// Code that matches the kernel; `None` if the recorded kernel no longer exists.
    pub matched: Option<MatchedCode>,
    /// Overlap of two halves of the training.
    pub overlap: Option<HotOverlap>,
    /// Reason if there are no halves.
    pub whole: Option<String>,
    /// Counts that were left out during import, by name as in the manifest's `health`; without
    /// zeros.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// Findings; the profile is refused if one of them is a refusal.
    pub findings: Vec<GateFinding>,
}

/// Descriptions of the counts left out by imports, in the manifest's `health`.
const LEFT_OUT: [(Anomaly, &str); 6] = [
    (Anomaly::StrangeLines, "lines were not understood"),
    (Anomaly::StrangeRuns, "runs between two branches do not fit the kernel's code"),
    (Anomaly::UnplacedRuns, "runs are in the kernel's memory where it has no function"),
    (Anomaly::SpeculatedBranches, "branches were not taken, or undone by the CPU"),
    (Anomaly::SilentCpus, "CPUs have no sample"),
    (Anomaly::CallsOfUnknownCode, "calls are of code that the image does not have"),
];

/// Returns the counts left out by an import.
pub(super) fn left_out(manifest: &Manifest) -> BTreeMap<String, u64> {
    let counts = LEFT_OUT.map(|(anomaly, _)| (anomaly.name().to_owned(), manifest.anomaly(anomaly)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

impl ProfileQuality {
    /// Returns the share of the executed instructions that have counts and a place in the kernel, 0
    /// to 1.
    pub fn usable(&self) -> f64 {
        let Some(matched) = &self.matched else { return 0.0 };
        let all =
            self.executed.unwrap_or_default().max(matched.ran.instructions.saturating_add(matched.outside));
        share(matched.matched_instructions.saturating_add(matched.score.inferred), all)
    }

    /// Checks that the profile may be used.
    ///
    /// # Errors
    /// [`ProfileRefusal`] with every reason.
    pub fn verdict(&self) -> Result<(), ProfileRefusal> {
        let reasons: Vec<GateFinding> =
            self.findings.iter().filter(|finding| finding.refused).cloned().collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let kernel = format!("{} ({})", self.kernel.label, self.kernel.id);
        Err(ProfileRefusal { profile: self.profile.clone(), kernel, reasons })
    }

    /// Describes the coverage of a profile of calls.
    fn calls_in_words(&self) -> String {
        let has = match self.unit {
            CountUnit::Samples => "whose samples have callers or callees",
            _ => "with counted calls",
        };
        match self.coverage {
            Some(share) => {
                format!("{} of the time in the kernel's image is in functions {has}", percent(share))
            }
            None => format!("{} {}; it has no times to compare them with", self.counted, self.unit),
        }
    }

    /// Summarizes the figures in one line.
    pub fn line(&self) -> String {
        let mut line = format!("profile {}", self.profile);
        if self.unit.is_of_calls() {
            line += &format!(": {}", self.calls_in_words());
        } else if let Some(coverage) = self.coverage {
            line += &format!(": {} of the kernel's {} have counts", percent(coverage), self.unit);
        }
        if let Some(matched) = self.matched.as_ref().filter(|_| self.unit.is_of_calls()) {
            let (here, ran) = (matched.same.functions, matched.ran.functions);
            line += &format!("; kernel {} has {here} of {ran} functions by name", self.kernel.label);
        } else if let Some(matched) = &self.matched {
            let fitting = matched.same.functions + matched.same_flow.functions;
            line += &format!(
                "; {fitting} of {} functions and {} of {} blocks match kernel {}",
                matched.ran.functions, matched.matched_blocks, matched.blocks, self.kernel.label
            );
        }
        if let Some(overlap) = &self.overlap {
            line += &format!("; hot sets of its halves overlap by {}", percent(overlap.hot[0].overlap));
        }
        line
    }
}

/// Refusal of a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ProfileRefusal {
    /// Id of the profile.
    pub profile: String,
    /// Kernel that the profile was to be used for.
    pub kernel: String,
    /// Refusing findings, at least one.
    pub reasons: Vec<GateFinding>,
}

impl fmt::Display for ProfileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile {} is refused for kernel {}:", self.profile, self.kernel)?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))
    }
}

impl fmt::Display for ProfileQuality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kernel: &KernelId| format!("{} {} ({})", kernel.label, kernel.version, kernel.id);
        write!(f, "Profile {} of kernel {}", self.profile, name(&self.recorded))?;
        match self.recorded.id == self.kernel.id {
            true => writeln!(f)?,
            false => writeln!(f, ", for kernel {}", name(&self.kernel))?,
        }
        let coverage = match (self.executed, self.coverage) {
            (Some(executed), Some(share)) => {
                format!("{} of {executed} executed instructions have counts", percent(share))
            }
            _ if self.unit.is_of_calls() => self.calls_in_words(),
            _ => format!("{} counted {}; how many were executed is not known", self.counted, self.unit),
        };
        writeln!(f, "  coverage    {coverage}")?;
        if let Some([taken, counted]) = self.taken {
            let covered = percent(share(counted, taken));
            writeln!(f, "              {covered} of {taken} taken branches have counts")?;
        }
        if let Some([bytes, counted]) = self.code_bytes {
            let covered = percent(share(counted, bytes));
            writeln!(f, "              {covered} of the image's {bytes} bytes of functions are of files with counters")?;
        }
        if let Some(matched) = &self.matched {
            self.fmt_matched(matched, f)?;
        }
        match (&self.overlap, &self.whole) {
            (Some(overlap), _) => {
                for hot in &overlap.hot {
                    let [one, two] = hot.functions;
                    writeln!(
                        f,
                        "  hot {:.0} %    {one} and {two} functions, {} of them in both: overlap {}",
                        hot.cut * 100.0,
                        hot.common,
                        percent(hot.overlap)
                    )?;
                }
                let weight = percent(overlap.common_weight);
                writeln!(f, "  halves      {}; {weight} of the weight in common", overlap.halves)?;
                if let Some(code) = overlap.common_code {
                    writeln!(f, "              {} of the weight in common by instruction", percent(code))?;
                }
            }
            (None, Some(whole)) => writeln!(f, "  halves      none: {whole}")?,
            (None, None) => {}
        }
        for (anomaly, words) in LEFT_OUT {
            if let Some(count) = self.left_out.get(anomaly.name()) {
                writeln!(f, "  left out    {count} {words}")?;
            }
        }
        for finding in &self.findings {
            let word = if finding.refused { "REFUSED" } else { "warning" };
            writeln!(f, "  {word}     {finding}")?;
        }
        match self.verdict() {
            Ok(()) => write!(f, "  verdict     fit for use"),
            Err(_) => write!(f, "  verdict     refused"),
        }
    }
}

impl ProfileQuality {
    fn fmt_matched(&self, matched: &MatchedCode, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unit == CountUnit::Arcs {
            return writeln!(
                f,
                "  functions   {} that ran; each is as this build has it",
                matched.ran.functions
            );
        }
        let of = |instructions: u64| percent(share(instructions, matched.ran.instructions));
        if self.unit.is_of_calls() {
            writeln!(
                f,
                "  functions   {} of {} have their name in the kernel, {} of the {}",
                matched.same.functions,
                matched.ran.functions,
                of(matched.same.instructions),
                self.unit
            )?;
            for lost in matched.lost.iter().take(MAX_NAMED) {
                writeln!(f, "              {:>8} {} (not there)", of(lost.instructions), lost.name)?;
            }
            if matched.outside > 0 {
                let outside = matched.outside;
                writeln!(
                    f,
                    "  left out    {outside} {} of modules and programs: only the image is ordered",
                    self.unit
                )?;
            }
            return Ok(());
        }
        let fitting = matched.same.functions + matched.same_flow.functions;
        writeln!(f, "  functions   {fitting} of {} that ran match", matched.ran.functions)?;
        for (what, ran) in [
            ("same instructions", matched.same),
            ("same blocks, other instructions", matched.same_flow),
            ("other blocks: stale", matched.changed),
            ("not there", matched.gone),
        ] {
            if ran.functions > 0 {
                writeln!(
                    f,
                    "              {:>6} {what}, {} of what ran",
                    ran.functions,
                    of(ran.instructions)
                )?;
            }
        }
        writeln!(
            f,
            "  blocks      {} of {} match, {} of what ran",
            matched.matched_blocks,
            matched.blocks,
            of(matched.matched_instructions)
        )?;
        let [branches, kept] = matched.branches;
        writeln!(f, "  branches    {kept} of {branches} match")?;
        if self.recorded.id != self.kernel.id {
            let TransferScore { exact, loose, inferred, .. } = matched.score;
            writeln!(
                f,
                "  counts      {} matched exactly, {} loosely, {} inferred",
                of(exact),
                of(loose),
                of(inferred)
            )?;
            writeln!(f, "  lost        {} of the executed instructions", percent(1.0 - self.usable()))?;
        }
        for lost in matched.lost.iter().take(MAX_NAMED) {
            let fate = match lost.fate {
                LossReason::Changed => "other blocks",
                LossReason::Gone => "not there",
            };
            writeln!(f, "              {:>8} {} ({fate})", of(lost.instructions), lost.name)?;
        }
        if matched.lost.len() > MAX_NAMED {
            writeln!(f, "              and {} more", matched.lost.len() - MAX_NAMED)?;
        }
        Ok(())
    }
}
