//! The figures of the gate, and its verdict.

use super::{Fate, Matched, Overlap};
use kerntune_profile::{KernelId, Manifest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Least share of the executed instructions of the kernel that must have counts. The emulator counts every one, so that
/// nearly all have; below this something was left out on the way.
pub const MIN_COVERAGE: f64 = 0.9;

/// Least share of them, in percent, that must have a place in another kernel. Below it more of the time is spent in code
/// that the compiler is told nothing of than in code that it is told of.
pub const MIN_CARRIED_PERCENT: u64 = 50;

/// Least overlap of the hot sets at 90 % of two halves of a training: below it what is hot in the one half is mostly
/// not hot in the other.
pub const MIN_OVERLAP: f64 = 0.5;

/// Below this the halves are of different work, and the gate says so: between 99 %, which two runs of one training have, and
/// 65 %, which two workloads have (docs/quality.md).
pub const STEADY_OVERLAP: f64 = 0.8;

/// Largest share of the runs between two sampled branches that may not fit the kernel's code.
pub const MAX_STRANGE_RUNS: f64 = 0.05;

/// Fewer instructions than this are no training to speak of: a millisecond of an emulated CPU.
pub const FEW_INSTRUCTIONS: u64 = 1_000_000;

/// Names lost functions in what is printed.
const NAMED: usize = 10;

/// Something that the gate has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check: `counts`, `training`, `overflow`, `kernel`, `coverage`, `branches`, `cpus`, `runs`, `blocks`, `halves` or `recipe`.
    pub check: String,
    /// Whether the profile is refused for it; otherwise it is a warning.
    pub refused: bool,
    /// What was found.
    pub found: String,
    /// What to do.
    pub mend: String,
}

impl Finding {
    /// One for which the profile is refused.
    pub fn refused(check: &str, found: String, mend: String) -> Self {
        Self { check: check.into(), refused: true, found, mend }
    }

    pub(super) fn warning(check: &str, found: String, mend: String) -> Self {
        Self { refused: false, ..Self::refused(check, found, mend) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.found, self.mend)
    }
}

/// A kernel in messages.
pub(super) fn named(kernel: &KernelId) -> String {
    format!("{} ({})", kernel.label, kernel.id)
}

/// What a count is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Executed instructions: recordings.
    Instructions,
    /// Taken arcs of the control flow: counters of an instrumented kernel.
    Arcs,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Instructions => "instructions",
            Unit::Arcs => "taken arcs",
        })
    }
}

/// How fit a recording is for a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Format and version of this object in JSON.
    pub schema: String,
    /// Id of the recording.
    pub profile: String,
    /// The kernel that was recorded.
    pub recorded: KernelId,
    /// The kernel that it is for.
    pub kernel: KernelId,
    /// The recipe that was asked about.
    pub recipe: Option<String>,
    /// What its counts are of: the unit of all figures that are not functions, blocks or branches.
    pub unit: Unit,
    /// Instructions that the kernel executed in the recording's regions; None where the recording does not say.
    pub executed: Option<u64>,
    /// Instructions, or taken arcs, that have counts.
    pub counted: u64,
    /// Of counters: bytes of the image's functions, and of them those in functions of source files with counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<[u64; 2]>,
    /// The counted share of the executed, 0 to 1; for a profile that was carried what is left of what was recorded.
    pub coverage: Option<f64>,
    /// Branches that the kernel took in the recording's regions, and of them those with counts; None where the recording does not
    /// say, and for a profile that was carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<[u64; 2]>,
    /// What belongs to the kernel; None if the recorded kernel is not at hand any more.
    pub matched: Option<Matched>,
    /// How alike two halves of the training are.
    pub overlap: Option<Overlap>,
    /// Why there are no halves.
    pub whole: Option<String>,
    /// What was left out when it was imported, by name, as in the manifest's `health`; without what there was none of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// What is to be said of it; refused if one of them is.
    pub findings: Vec<Finding>,
}

/// Names of the counts of what imports leave out, in the manifest's `health`, in words.
const LEFT_OUT: [(&str, &str); 6] = [
    ("strange_lines", "lines were not understood"),
    ("strange_runs", "runs between two branches do not fit the kernel's code"),
    ("unplaced_runs", "runs are in the kernel's memory where it has no function"),
    ("speculated_branches", "branches were not taken, or undone by the CPU"),
    ("silent_cpus", "CPUs have no sample"),
    ("calls_of_unknown_code", "calls are of code that the image does not have"),
];

/// Counts of what an import left out.
pub(super) fn left_out(manifest: &Manifest) -> BTreeMap<String, u64> {
    let count = |name: &str| manifest.health.get(name).copied().filter(|count| *count > 0);
    LEFT_OUT.iter().filter_map(|(name, _)| Some(((*name).to_owned(), count(name)?))).collect()
}

impl Quality {
    /// The share of the executed instructions that have counts and a place in the kernel, 0 to 1.
    pub fn usable(&self) -> f64 {
        let Some(matched) = &self.matched else { return 0.0 };
        let all =
            self.executed.unwrap_or_default().max(matched.ran.instructions.saturating_add(matched.outside));
        share(matched.matched_instructions, all)
    }

    /// Whether the profile may be used.
    ///
    /// # Errors
    /// [`Unfit`] with every reason.
    pub fn verdict(&self) -> Result<(), Unfit> {
        let reasons: Vec<Finding> = self.findings.iter().filter(|finding| finding.refused).cloned().collect();
        if reasons.is_empty() {
            return Ok(());
        }
        let kernel = format!("{} ({})", self.kernel.label, self.kernel.id);
        Err(Unfit { profile: self.profile.clone(), kernel, reasons })
    }

    /// In one line.
    pub fn line(&self) -> String {
        let mut line = format!("profile {}", self.profile);
        if let Some(coverage) = self.coverage {
            line += &format!(": {} of the kernel's {} have counts", percent(coverage), self.unit);
        }
        if let Some(matched) = &self.matched {
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

/// Why a profile is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unfit {
    /// Id of the profile.
    pub profile: String,
    /// The kernel that it was to be used for.
    pub kernel: String,
    /// At least one.
    pub reasons: Vec<Finding>,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "profile {} is refused for kernel {}:", self.profile, self.kernel)?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\n  - {reason}"))
    }
}

impl fmt::Display for Quality {
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
            }
            (None, Some(whole)) => writeln!(f, "  halves      none: {whole}")?,
            (None, None) => {}
        }
        for (name, words) in LEFT_OUT {
            if let Some(count) = self.left_out.get(name) {
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

impl Quality {
    fn fmt_matched(&self, matched: &Matched, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unit == Unit::Arcs {
            return writeln!(
                f,
                "  functions   {} that ran; each is as this build has it",
                matched.ran.functions
            );
        }
        let of = |instructions: u64| percent(share(instructions, matched.ran.instructions));
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
            writeln!(f, "  lost        {} of the executed instructions", percent(1.0 - self.usable()))?;
        }
        for lost in matched.lost.iter().take(NAMED) {
            let fate = match lost.fate {
                Fate::Changed => "other blocks",
                Fate::Gone => "not there",
            };
            writeln!(f, "              {:>8} {} ({fate})", of(lost.instructions), lost.name)?;
        }
        if matched.lost.len() > NAMED {
            writeln!(f, "              and {} more", matched.lost.len() - NAMED)?;
        }
        Ok(())
    }
}

pub(super) fn share(part: u64, of: u64) -> f64 {
    if of == 0 {
        0.0
    } else {
        part as f64 / of as f64
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
