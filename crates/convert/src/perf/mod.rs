//! Samples of a CPU's last branches (LBR and its like), as `perf script -F cpu,ip,brstack` prints them (in).
//!
//! A sample is a line with entries `0xFROM/0xTO/P/-/-/0`, the newest branch first (`tools/perf/builtin-script.c`,
//! `perf_sample__fprintf_brstack`); `[003]` on it or on a line before it is the CPU. Each entry is a taken branch; and
//! from where the branch before it went to, straight code was run up to it. A line with nothing but a decimal number, not indented, says
//! how often the sample after it occurred, as in the text that [`crate::autofdo::BranchRecords`] writes.
//!
//! Lines without branches are understood, too: a sample's CPU and addresses, what perf says of other events, empty lines. Whatever
//! else there is is counted ([`BranchStacks::strange`]), and so is a sample one of whose entries cannot be read, of which
//! nothing is taken: the entries around a gap are no straight code.
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
//! # Ok::<(), kerntune_convert::perf::ReadError>(())
//! ```

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

impl Strange {
    fn add(&mut self, number: u64, line: &str) {
        self.lines += 1;
        self.first.get_or_insert_with(|| (number, beginning(line)));
    }
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

    /// `None` if a count overflows.
    fn sample(&mut self, entries: &[(u64, u64)], count: u64, cpu: Option<u32>) -> Option<()> {
        self.sample_lines += 1;
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

/// Reads line by line.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    stacks: BranchStacks,
    /// Lines until now.
    number: u64,
    /// Of a line that said it for the next sample: the number of that line, and what it says.
    count: Option<(u64, u64)>,
    cpu: Option<u32>,
}

impl Lines {
    /// Takes the next line.
    ///
    /// # Errors
    /// [`ReadError::Overflow`], [`ReadError::LongLine`].
    pub fn line(&mut self, line: &str) -> Result<(), ReadError> {
        self.number += 1;
        if line.len() as u64 > LINE_MAX {
            return Err(ReadError::LongLine { line: self.number });
        }
        let indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        let overflow = |line: &str, number| ReadError::Overflow { line: number, text: beginning(line) };
        if let Some(header) = line.strip_prefix('#') {
            self.stacks.header(header);
        } else if line.contains("PERF_RECORD_") {
            self.stacks.kernel_at = self.stacks.kernel_at.or(kernel_place(line));
        } else if !indented && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) {
            let count = line.parse().map_err(|_| overflow(line, self.number))?;
            if let Some((number, unused)) = self.count.replace((self.number, count)) {
                self.stacks.strange.add(number, &unused.to_string());
            }
        } else {
            match words(line) {
                Some(Words { cpu, entries }) => {
                    self.cpu = cpu.or(self.cpu);
                    if !entries.is_empty() {
                        let count = self.count.take().map_or(1, |(_, count)| count);
                        let taken = self.stacks.sample(&entries, count, self.cpu.take());
                        taken.ok_or_else(|| overflow(line, self.number))?;
                    }
                }
                None => {
                    // What was said for this sample is not for the one after it.
                    (self.count, self.cpu) = (None, None);
                    self.stacks.strange.add(self.number, line);
                }
            }
        }
        Ok(())
    }

    /// What all lines came to.
    pub fn finish(mut self) -> BranchStacks {
        if let Some((number, count)) = self.count {
            self.stacks.strange.add(number, &count.to_string());
        }
        self.stacks
    }
}

/// What a line of a sample says.
struct Words {
    cpu: Option<u32>,
    entries: Vec<(u64, u64)>,
}

/// `None` for a line that is none of a sample, or damaged.
fn words(line: &str) -> Option<Words> {
    let mut words = Words { cpu: None, entries: Vec::new() };
    let mut known = line.is_empty();
    for word in line.split_whitespace() {
        if let Some(entry) = entry(word) {
            words.entries.push(entry);
        } else if word.starts_with("0x") && word.contains('/') {
            return None;
        } else if let Some(cpu) = cpu_number(word) {
            words.cpu = Some(words.cpu.unwrap_or(cpu));
            known = true;
        } else {
            // A code address, which the line of a call chain has alone; short words may be any.
            known |= (word == "0" || word.len() > 3) && hex(word).is_some();
        }
    }
    (known || !words.entries.is_empty()).then_some(words)
}

fn add<K: Ord>(counts: &mut BTreeMap<K, u64>, what: K, count: u64) -> Option<()> {
    let sum = counts.entry(what).or_default();
    *sum = sum.checked_add(count)?;
    Some(())
}

/// `0xFROM/0xTO/…`; without a third part it may have been cut off in an address.
fn entry(word: &str) -> Option<(u64, u64)> {
    let mut parts = word.split('/');
    let mut address = || hex(parts.next()?.strip_prefix("0x")?);
    let entry = (address()?, address()?);
    parts.next().map(|_| entry)
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
    // `from_str_radix` takes a sign.
    if digits.starts_with('+') {
        return None;
    }
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
        assert_eq!((stacks.sample_lines, stacks.strange.lines), (3, 0));
        assert_eq!(stacks.cpus, BTreeMap::from([(0, 1), (2, 1)]));
        let branches = [((0x0, 0x8), 3), ((0x10, 0x20), 4), ((0x30, 0x60), 5), ((0x50, 0x40), 1)];
        assert_eq!(stacks.branches, BTreeMap::from(branches));
        // From 0x40 to 0x30 is no way.
        assert_eq!(stacks.runs, BTreeMap::from([((0x8, 0x10), 3), ((0x20, 0x30), 4)]));
    }

    #[test]
    fn what_is_not_understood_is_counted_and_the_first_is_named() {
        // The second entry of line 2 is damaged, line 3 is cut off in an address, line 5 is nothing of perf's, line 6
        // counts no sample.
        let text = "\
 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0
 0x30/0x60/P/-/-/0 0xzz/0x50/P/-/-/0 0x10/0x20/P/-/-/0
 0x30/0x6

once upon a \u{1b}[31mtime
7
8
 0x30/0x60/P/-/-/0
";
        let stacks = BranchStacks::read(text.as_bytes()).unwrap();
        assert_eq!((stacks.samples, stacks.sample_lines, stacks.strange.lines), (9, 2, 4));
        let first = (2, " 0x30/0x60/P/-/-/0 0xzz/0x50/P/-/-/0 0x10/0x20/P/-/-/0".trim().to_string());
        assert_eq!(stacks.strange.first, Some(first));
        assert_eq!(stacks.runs, BTreeMap::from([((0x20, 0x30), 1)]));
        assert!((stacks.strange_share() - 4.0 / 6.0).abs() < 1e-9);
        let alone = BranchStacks::read(&b"\x1b[31mred\n"[..]).unwrap();
        assert_eq!(alone.strange.first, Some((1, "[31mred".into())));
    }

    #[test]
    fn counts_that_overflow_are_refused() {
        let refused = |text: &str| BranchStacks::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            refused("\n18446744073709551616\n 0x30/0x60/P/-/-/0\n"),
            "line 2: the counts overflow 64 bits: 18446744073709551616"
        );
        let twice = "18446744073709551615\n 0x30/0x60/P/-/-/0\n".repeat(2);
        assert!(refused(&twice).starts_with("line 4: the counts overflow 64 bits: 0x30/0x60"));
        assert!(refused(&"x".repeat(1 << 21)).starts_with("line 1 is longer than 1048576 bytes"));
    }

    #[test]
    fn text_without_branches_has_no_samples() {
        let stacks =
            BranchStacks::read(&b"swapper 0 [000] 1.0: cycles: ffffffff81000000 x\n\xff/\n"[..]).unwrap();
        assert_eq!((stacks.samples, stacks.silent_cpus(), stacks.strange.lines), (0, None, 1));
        assert!(stacks.branches.is_empty() && stacks.runs.is_empty());
    }
}
