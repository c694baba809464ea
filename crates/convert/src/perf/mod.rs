//! Samples of a CPU's last branches (LBR and its like), as `perf script -F cpu,ip,brstack` prints them (in).
//!
//! A sample is a line with entries `0xFROM/0xTO/P/-/-/0`, the newest branch first (`tools/perf/builtin-script.c`,
//! `perf_sample__fprintf_brstack`); `[003]` on it or on a line before it is the CPU. Each entry is a taken branch; and
//! from where the branch before it went to, straight code was run up to it. Entries of branches that were not taken (`N`) or were
//! speculated and undone (`SPEC_WRONG_PATH`) are left out, and the code goes on over them. A line with nothing but a decimal number,
//! without a blank, says how often the stack after it occurred, as in the text that [`crate::autofdo::BranchRecords`] writes. Where a
//! header or a thread shows that perf wrote the text, such a line is a sample of a process without branches.
//!
//! Lines without branches are understood, too: a sample's CPU and addresses, what perf says of other events, empty lines. Whatever
//! else there is is counted ([`BranchStacks::strange`]), and so is a sample one of whose entries cannot be read, of which
//! nothing is taken: the entries around a gap are no straight code.
//!
//! With `--show-mmap-events` there is a record of where the kernel's image was, and with `--header` there are lines
//! `# nrcpus online : 8` and `# os release : 6.12.117`. Another header, or a record with another place, begins another
//! [`Part`]: samples of another boot or machine.
//!
//! ```
//! use kerntune_convert::perf::BranchStacks;
//! let text = b" [001] ffffffff81000190 0xffffffff81000120/0xffffffff81000180/P/-/-/0 \
//!              0xffffffff81000090/0xffffffff81000100/P/-/-/0\n";
//! let stacks = BranchStacks::read(&text[..])?;
//! assert_eq!((stacks.samples, stacks.parts[0].branches.len()), (1, 2));
//! assert_eq!(stacks.parts[0].runs[&(0xffff_ffff_8100_0100, 0xffff_ffff_8100_0120)], 1);
//! # Ok::<(), kerntune_convert::perf::ReadError>(())
//! ```

mod lines;
#[cfg(test)]
mod tests;

pub use lines::Lines;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

/// Bytes of the longest line that is read; a sample of 32 branches has some 2,000.
const LINE_MAX: u64 = 1 << 20;

/// Why a text cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// From the input.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A count that the profile's numbers do not hold.
    #[error("line {line}: the counts overflow 64 bits: {text}")]
    Overflow {
        /// The line's number, from 1.
        line: u64,
        /// Its beginning, without control characters.
        text: String,
    },
    /// Addresses of files, not of the kernel as it ran.
    #[error(
        "line {line}: its addresses have a build id before them (`buildid:`), so that they are of files and not of memory; \
         give what `perf script --header --show-mmap-events -F cpu,ip,brstack` prints"
    )]
    BuildId {
        /// The line's number, from 1.
        line: u64,
    },
    /// No text of perf's.
    #[error("line {line} is longer than {LINE_MAX} bytes: it is not what `perf script` prints")]
    LongLine {
        /// The line's number, from 1.
        line: u64,
    },
}

/// Lines that were not understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strange {
    /// How many there are.
    pub lines: u64,
    /// The number of the first, from 1, and its beginning, without control characters.
    pub first: Option<(u64, String)>,
}

/// As much of a line as a message shows.
fn beginning(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// What samples have counted, at the addresses at which the kernel ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchStacks {
    /// Samples with branches.
    pub samples: u64,
    /// Lines that hold a sample's branches, each counted once.
    pub sample_lines: u64,
    /// What was not understood.
    pub strange: Strange,
    /// Entries of branches that were not taken, or taken by mistake and undone; left out.
    pub speculated: u64,
    /// Branches in the longest stack.
    pub longest: usize,
    /// One for each boot or machine.
    pub parts: Vec<Part>,
}

/// Samples of one boot of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Samples with branches.
    pub samples: u64,
    /// Samples of each CPU, where they say it.
    pub cpus: BTreeMap<u32, u64>,
    /// The machine's name.
    pub hostname: Option<String>,
    /// CPUs that the machine had.
    pub cpus_online: Option<u32>,
    /// The kernel's release.
    pub release: Option<String>,
    /// Where the kernel's image began.
    pub kernel_at: Option<u64>,
    /// Branch and target → how often it was taken.
    pub branches: BTreeMap<(u64, u64), u64>,
    /// First and last instruction of straight code → how often it ran.
    pub runs: BTreeMap<(u64, u64), u64>,
}

impl BranchStacks {
    /// Reads the text; see [`Lines`].
    ///
    /// # Errors
    /// [`ReadError`]; of `input`, which is best buffered, those of I/O.
    pub fn read(mut input: impl BufRead) -> Result<Self, ReadError> {
        let (mut lines, mut line) = (Lines::default(), Vec::new());
        while input.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut line)? > 0 {
            lines.line(&String::from_utf8_lossy(&line))?;
            line.clear();
        }
        Ok(lines.finish())
    }

    /// The share of the lines with samples, or what may have been one, that was not understood.
    pub fn strange_share(&self) -> f64 {
        let all = self.sample_lines.saturating_add(self.strange.lines);
        self.strange.lines as f64 / all.max(1) as f64
    }

    /// CPUs of which there is no sample, of all parts together; None if that is not known.
    pub fn silent_cpus(&self) -> Option<u32> {
        let sampled = self.parts.iter().filter(|part| part.samples > 0);
        sampled.filter_map(Part::silent_cpus).reduce(u32::saturating_add)
    }
}

impl Part {
    /// True if both are of one boot, as far as headers and the kernel's place say.
    fn is_boot_of(&self, other: &Self) -> bool {
        let boot =
            |part: &Self| (part.hostname.clone(), part.release.clone(), part.cpus_online, part.kernel_at);
        self.hostname.is_some() && boot(self) == boot(other)
    }

    /// Adds samples of the same boot. A sum that overflows is the largest number.
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

    /// CPUs of which there is no sample; None if that is not known.
    fn silent_cpus(&self) -> Option<u32> {
        let seen = u32::try_from(self.cpus.len()).ok().filter(|seen| *seen > 0)?;
        Some(self.cpus_online?.saturating_sub(seen))
    }

    /// `None` if a count overflows.
    fn sample(&mut self, entries: &[(u64, u64)], count: u64, cpu: Option<u32>) -> Option<()> {
        self.samples = self.samples.checked_add(count)?;
        if let Some(cpu) = cpu {
            add(&mut self.cpus, cpu, count)?;
        }
        for &branch in entries {
            add(&mut self.branches, branch, count)?;
        }
        for pair in entries.windows(2) {
            let &[(last, _), (_, first)] = pair else { continue };
            if first <= last {
                add(&mut self.runs, (first, last), count)?;
            }
        }
        Some(())
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, what: K, count: u64) -> Option<()> {
    let sum = counts.entry(what).or_default();
    *sum = sum.checked_add(count)?;
    Some(())
}
