//! Samples of a CPU's last branches (LBR and its like), as `perf script -F cpu,ip,brstack` prints
//! them (in).
//!
//! A sample is a line with entries `0xFROM/0xTO/P/-/-/0`, the newest branch first
//! (`tools/perf/builtin-script.c`, `perf_sample__fprintf_brstack`); `[003]` on it or on a line
//! before it is the CPU. Each entry is a taken branch, reached by straight code from the target of
//! the branch before it. Entries of branches that were not taken (`N`), or speculated and undone
//! (`SPEC_WRONG_PATH`), are left out; straight code continues over them. A line with only a decimal
//! number and no blank is the count of the next stack, as in the text that
//! [`crate::autofdo::BranchRecords`] writes. If a header or a thread shows that perf wrote the
//! text, such a line is a sample of a process without branches.
//!
//! Lines without branches are recognized, too: a sample's CPU and addresses, other events of perf,
//! empty lines. All other lines are counted ([`BranchStacks::strange`]). A sample with an
//! unreadable entry is counted there and ignored as a whole, because the entries around a gap do
//! not enclose straight code.
//!
//! `--show-mmap-events` adds a record with the address of the kernel's image, and `--header` adds
//! lines `# nrcpus online : 8` and `# os release : 6.12.117`. Another header, or a record with
//! another address, begins another [`BootSamples`]: samples of another boot or machine.
//!
//! ```
//! use kerntune_convert::perf::BranchStacks;
//! let text = b" [001] ffffffff81000190 0xffffffff81000120/0xffffffff81000180/P/-/-/0 \
//!              0xffffffff81000090/0xffffffff81000100/P/-/-/0\n";
//! let stacks = BranchStacks::read(&text[..])?;
//! assert_eq!((stacks.samples, stacks.parts[0].branches.len()), (1, 2));
//! assert_eq!(stacks.parts[0].runs[&(0xffff_ffff_8100_0100, 0xffff_ffff_8100_0120)], 1);
//! # Ok::<(), kerntune_convert::perf::PerfTextError>(())
//! ```

mod lines;
#[cfg(test)]
mod tests;

pub use lines::BranchStackParser;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// Maximum length of a line in bytes; a sample of 32 branches has some 2,000.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Failure to read a text.
#[derive(Debug, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum PerfTextError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("line {line}: the counts overflow 64 bits: {text}")]
    Overflow { line: u64, text: String },
    #[error(
        "line {line}: its addresses have a build id before them (`buildid:`), so that they are of files and not of memory; \
         give what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints"
    )]
    BuildId { line: u64 },
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes: it is not what `perf script` prints")]
    LongLine { line: u64 },
}

/// Lines that were not recognized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnparsedLines {
    /// Number of lines.
    pub lines: u64,
    /// Number of the first line, from 1, and its beginning without control characters.
    pub first: Option<(u64, String)>,
}

/// Returns the part of a line that a message shows.
fn beginning(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// Counts of samples, at the addresses at which the kernel ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchStacks {
    /// Samples with branches.
    pub samples: u64,
    /// Lines with a sample's branches, each counted once.
    pub sample_lines: u64,
    /// Lines that were not recognized.
    pub strange: UnparsedLines,
    /// Entries of branches that were not taken, or taken by mistake and undone; left out.
    pub speculated: u64,
    /// Entries of all stacks.
    pub entries: u64,
    /// Entries without source or target; left out, with the straight code beside them.
    pub empty_entries: u64,
    /// Pairs of branches of which the older one goes to an address behind the newer one: no straight
    /// code is between them, so that a branch is missing or wrong.
    pub backward_runs: u64,
    /// Number of branches in the longest stack.
    pub longest: usize,
    /// Samples of each boot or machine.
    pub parts: Vec<BootSamples>,
}

/// Samples of one boot of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootSamples {
    /// Samples with branches.
    pub samples: u64,
    /// Number of samples of each CPU, if the samples name it.
    pub cpus: BTreeMap<u32, u64>,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Number of online CPUs.
    pub cpus_online: Option<u32>,
    /// Release of the kernel.
    pub release: Option<String>,
    /// Start address of the kernel's image.
    pub kernel_at: Option<u64>,
    /// Branch and target → number of times taken.
    pub branches: BTreeMap<(u64, u64), u64>,
    /// First and last instruction of straight code → number of executions.
    pub runs: BTreeMap<(u64, u64), u64>,
}

impl BranchStacks {
    /// Reads the text; see [`BranchStackParser`].
    ///
    /// # Errors
    /// [`PerfTextError`], also for I/O errors of `input`, which should be buffered.
    pub fn read(mut input: impl BufRead) -> Result<Self, PerfTextError> {
        let (mut lines, mut line) = (BranchStackParser::default(), Vec::new());
        while input.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)? > 0 {
            lines.line(&String::from_utf8_lossy(&line))?;
            line.clear();
        }
        Ok(lines.finish())
    }

    /// Returns the fraction of unrecognized lines among those with samples and themselves.
    pub fn unparsed_share(&self) -> f64 {
        let all = self.sample_lines.saturating_add(self.strange.lines);
        self.strange.lines as f64 / all.max(1) as f64
    }

    /// Returns the number of CPUs without a sample, over all parts; `None` if it is unknown.
    pub fn silent_cpus(&self) -> Option<u32> {
        let sampled = self.parts.iter().filter(|part| part.samples > 0);
        sampled.filter_map(BootSamples::silent_cpus).reduce(u32::saturating_add)
    }
}

impl BootSamples {
    /// Checks whether both are of one boot, by headers and the kernel's address.
    fn is_boot_of(&self, other: &Self) -> bool {
        let boot =
            |part: &Self| (part.hostname.clone(), part.release.clone(), part.cpus_online, part.kernel_at);
        self.hostname.is_some() && boot(self) == boot(other)
    }

    /// Adds samples of the same boot, saturating.
    fn join(&mut self, other: Self) {
        fn sum<K: Ord>(counts: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
            for (what, count) in more {
                let sum = counts.entry(what).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        self.samples = self.samples.saturating_add(other.samples);
        sum(&mut self.cpus, other.cpus);
        sum(&mut self.branches, other.branches);
        sum(&mut self.runs, other.runs);
    }

    /// Returns the number of CPUs without a sample; `None` if it is unknown.
    fn silent_cpus(&self) -> Option<u32> {
        let seen = u32::try_from(self.cpus.len()).ok().filter(|seen| *seen > 0)?;
        Some(self.cpus_online?.saturating_sub(seen))
    }

    /// Counts a sample; `None` if a count overflows.
    pub(crate) fn count(&mut self, count: u64, cpu: Option<u32>) -> Option<()> {
        self.samples = self.samples.checked_add(count)?;
        if let Some(cpu) = cpu {
            add(&mut self.cpus, cpu, count)?;
        }
        Some(())
    }

    /// Adds successive branches, the newest first, and the straight code between them. Returns the
    /// number of pairs without straight code between them; `None` if a count overflows.
    pub(crate) fn segment(&mut self, entries: &[(u64, u64)], count: u64) -> Option<u64> {
        for &branch in entries {
            add(&mut self.branches, branch, count)?;
        }
        let mut backward: u64 = 0;
        for pair in entries.windows(2) {
            let &[(last, _), (_, first)] = pair else { continue };
            if first <= last {
                add(&mut self.runs, (first, last), count)?;
            } else if (first ^ last) >> 63 == 0 {
                // Between kernel and user code, branches may be filtered out.
                backward = backward.checked_add(count)?;
            }
        }
        Some(backward)
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, what: K, count: u64) -> Option<()> {
    let sum = counts.entry(what).or_default();
    *sum = sum.checked_add(count)?;
    Some(())
}
