//! Samples of a CPU's last branches (LBR and its like), as `perf script -F cpu,ip,brstack` prints them (in).
//!
//! A sample is a line with entries `0xFROM/0xTO/P/-/-/0`, the newest branch first (`tools/perf/builtin-script.c`,
//! `perf_sample__fprintf_brstack`); `[003]` on it or on a line before it is the CPU. Each entry is a taken branch; and
//! from where the branch before it went to, straight code was run up to it. A line with nothing but a decimal number, not indented, says
//! how often the sample after it occurred, as in the text that [`crate::autofdo::BranchRecords`] writes.
//!
//! With `--show-mmap-events` there is a record of where the kernel's image was, and with `--header` there are lines
//! `# nrcpus online : 8` and `# os release : 6.12.117`.
//!
//! ```
//! use kerntune_convert::perf::BranchStacks;
//! let text = b" [001] ffffffff81000190 0xffffffff81000120/0xffffffff81000180/P/-/-/0 \
//!              0xffffffff81000090/0xffffffff81000100/P/-/-/0\n";
//! let stacks = BranchStacks::read(&text[..])?;
//! assert_eq!((stacks.samples, stacks.branches.len()), (1, 2));
//! assert_eq!(stacks.runs[&(0xffff_ffff_8100_0100, 0xffff_ffff_8100_0120)], 1);
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufRead};

/// What samples have counted, at the addresses at which the kernel ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchStacks {
    /// Samples with branches.
    pub samples: u64,
    /// Samples of each CPU, where they say it.
    pub cpus: BTreeMap<u32, u64>,
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
    /// Those of `input`, which is best buffered.
    pub fn read(mut input: impl BufRead) -> io::Result<Self> {
        let (mut lines, mut line) = (Lines::default(), Vec::new());
        while input.read_until(b'\n', &mut line)? > 0 {
            lines.line(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(lines.finish())
    }

    /// CPUs of which there is no sample; None if that is not known.
    pub fn silent_cpus(&self) -> Option<u32> {
        let seen = u32::try_from(self.cpus.len()).ok().filter(|seen| *seen > 0)?;
        Some(self.cpus_online?.saturating_sub(seen))
    }

    fn header(&mut self, header: &str) {
        let Some((name, value)) = header.split_once(" : ") else { return };
        match name.trim() {
            "nrcpus online" => self.cpus_online = value.trim().parse().ok(),
            "os release" => self.release = Some(value.trim().to_string()),
            _ => {}
        }
    }

    fn sample(&mut self, entries: &[(u64, u64)], count: u64, cpu: Option<u32>) {
        self.samples = self.samples.saturating_add(count);
        if let Some(cpu) = cpu {
            add(&mut self.cpus, cpu, count);
        }
        for &branch in entries {
            add(&mut self.branches, branch, count);
        }
        for pair in entries.windows(2) {
            let &[(last, _), (_, first)] = pair else { continue };
            if first <= last {
                add(&mut self.runs, (first, last), count);
            }
        }
    }
}

/// Reads line by line. What is neither a sample nor of the other lines that the module names is passed over.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    stacks: BranchStacks,
    /// Of a line that said it for the next sample.
    count: Option<u64>,
    cpu: Option<u32>,
}

impl Lines {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if let Some(header) = line.strip_prefix('#') {
            self.stacks.header(header);
        } else if line.contains("PERF_RECORD_MMAP") {
            self.stacks.kernel_at = self.stacks.kernel_at.or(kernel_place(line));
        } else if let Some(times) = line.parse().ok().filter(|_| !indented) {
            self.count = Some(times);
        } else {
            self.cpu = line.split_whitespace().find_map(cpu_number).or(self.cpu);
            let entries: Vec<(u64, u64)> = line.split_whitespace().filter_map(entry).collect();
            if !entries.is_empty() {
                self.stacks.sample(&entries, self.count.take().unwrap_or(1), self.cpu.take());
            }
        }
    }

    /// What all lines came to.
    pub fn finish(self) -> BranchStacks {
        self.stacks
    }
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, what: K, count: u64) {
    let sum = counts.entry(what).or_default();
    *sum = sum.saturating_add(count);
}

/// `0xFROM/0xTO/…`.
fn entry(word: &str) -> Option<(u64, u64)> {
    let mut parts = word.split('/');
    let mut address = || hex(parts.next()?.strip_prefix("0x")?);
    Some((address()?, address()?))
}

/// `[003]`.
fn cpu_number(word: &str) -> Option<u32> {
    word.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Of `… PERF_RECORD_MMAP -1/0: [0x…(0x…) @ 0xADDRESS]: x [kernel.kallsyms]_text`, where the symbol was that is named.
fn kernel_place(line: &str) -> Option<u64> {
    let (record, _) = line.split_once("[kernel.kallsyms]_")?;
    let (_, offset) = record.split_once("@ ")?;
    hex(offset.split([']', ' ']).next()?.strip_prefix("0x")?)
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_headers_and_the_kernels_place_are_read() {
        let text = "\
# os release : 6.12.117
# nrcpus online : 4
# event : name = cycles:k
 swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff9a000000(0x1000000) @ 0xffffffff9a000000]: x [kernel.kallsyms]_text
 rr 12 [002] 1.5: PERF_RECORD_MMAP2 12/12: [0x400000(0x1000) @ 0 fe:01 5 6]: r-xp /bin/rr
 [002]  ffffffff9a000190  0x30/0x60/P/-/-/7  0x10/0x20/M/-/-/0
 [000]
        ffffffff9a000190
 0x30/0x60/P/-/-/0 0x50/0x40/P/-/-/0
3
 0 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0 0x0/0x8/P/-/-/0

";
        let stacks = BranchStacks::read(text.as_bytes()).unwrap();
        assert_eq!((stacks.release.as_deref(), stacks.cpus_online), (Some("6.12.117"), Some(4)));
        assert_eq!(stacks.kernel_at, Some(0xffff_ffff_9a00_0000));
        assert_eq!((stacks.samples, stacks.silent_cpus()), (5, Some(2)));
        assert_eq!(stacks.cpus, BTreeMap::from([(0, 1), (2, 1)]));
        let branches = [((0x0, 0x8), 3), ((0x10, 0x20), 4), ((0x30, 0x60), 5), ((0x50, 0x40), 1)];
        assert_eq!(stacks.branches, BTreeMap::from(branches));
        // From 0x40 to 0x30 is no way.
        assert_eq!(stacks.runs, BTreeMap::from([((0x8, 0x10), 3), ((0x20, 0x30), 4)]));
    }

    #[test]
    fn text_without_branches_has_no_samples() {
        let stacks =
            BranchStacks::read(&b"swapper 0 [000] 1.0: cycles: ffffffff81000000 x\n\xff/\n"[..]).unwrap();
        assert_eq!((stacks.samples, stacks.silent_cpus()), (0, None));
        assert!(stacks.branches.is_empty() && stacks.runs.is_empty());
    }
}
