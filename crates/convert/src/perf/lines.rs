//! Parser that takes the text line by line.

use super::{beginning, BootSamples, BranchStacks, PerfTextError, UnparsedLines, MAX_LINE_BYTES};

/// Parser of branch stacks, one line at a time.
#[derive(Debug, Clone, Default)]
pub struct BranchStackParser {
    stacks: BranchStacks,
    /// Samples of the current boot.
    part: BootSamples,
    /// Number of lines so far.
    number: u64,
    /// Count for the next sample, with the number of its line.
    count: Option<(u64, u64)>,
    cpu: Option<u32>,
    /// A header was seen, so perf printed the text, and perf prints no counts.
    has_header: bool,
    /// Records begin with the thread, as perf prints them.
    has_threads: bool,
}

impl BranchStackParser {
    /// Parses the next line.
    ///
    /// # Errors
    /// [`PerfTextError`], except those of I/O.
    pub fn line(&mut self, line: &str) -> Result<(), PerfTextError> {
        self.number += 1;
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(PerfTextError::LongLine { line: self.number });
        }
        let whole = line.trim_end_matches(['\n', '\r']);
        let line = line.trim();
        let overflow = |line: &str, number| PerfTextError::Overflow { line: number, text: beginning(line) };
        if let Some(header) = line.strip_prefix('#') {
            self.has_header = true;
            self.header(header);
        } else if line.contains("PERF_RECORD_") {
            // The records of `export branches` have no thread before them.
            self.has_threads = !whole.starts_with("PERF_RECORD_");
            if let Some(place) = kernel_place(line) {
                self.place(place);
            }
        } else if !line.is_empty()
            && whole.bytes().all(|byte| byte.is_ascii_digit())
            && !self.has_header
            && !self.has_threads
        {
            let count = line.parse().map_err(|_| overflow(line, self.number))?;
            if let Some((number, unused)) = self.count.replace((self.number, count)) {
                self.stacks.strange.add(number, &unused.to_string());
            }
        } else if let Some(words) = words(line, self.number)? {
            self.cpu = words.cpu.or(self.cpu);
            if words.branches {
                let count = self.repeats(line);
                let cpu = self.cpu.take();
                let taken = self.sample(&words, count, cpu);
                taken.ok_or_else(|| overflow(line, self.number))?;
            }
        } else {
            // CPU and count apply only to the next sample.
            (self.count, self.cpu) = (None, None);
            self.stacks.strange.add(self.number, line);
        }
        Ok(())
    }

    /// Returns the samples of all lines.
    pub fn finish(mut self) -> BranchStacks {
        if let Some((number, count)) = self.count {
            self.stacks.strange.add(number, &count.to_string());
        }
        self.next_part();
        self.stacks
    }

    /// Returns the number of samples that the line `stack` stands for. A count is valid only before
    /// a stack in the format of `export branches`; before another one it may be a process's number.
    fn repeats(&mut self, stack: &str) -> u64 {
        let Some((number, count)) = self.count.take() else { return 1 };
        let first = stack.split_whitespace().find(|word| cpu_number(word).is_none());
        if first.is_some_and(|word| word == "0" || word.starts_with("0x")) {
            return count;
        }
        self.stacks.strange.add(number, &count.to_string());
        1
    }

    fn header(&mut self, header: &str) {
        let Some((name, value)) = header.split_once(" : ") else { return };
        let (name, value) = (name.trim(), value.trim());
        if matches!(name, "captured on" | "hostname" | "os release" | "nrcpus online")
            && self.part.samples > 0
        {
            self.next_part();
        }
        match name {
            "hostname" => self.part.hostname = Some(value.to_string()),
            "nrcpus online" => self.part.cpus_online = value.parse().ok(),
            "os release" => {
                if self.part.release.is_some() {
                    self.next_part();
                }
                self.part.release = Some(value.to_string());
            }
            _ => {}
        }
    }

    /// Records that the kernel is at `place` from here on.
    fn place(&mut self, place: u64) {
        if self.part.kernel_at == Some(place) {
            return;
        }
        if self.part.kernel_at.is_some() || self.part.samples > 0 {
            let part = &self.part;
            let headed = BootSamples {
                hostname: part.hostname.clone(),
                release: part.release.clone(),
                cpus_online: part.cpus_online,
                ..BootSamples::default()
            };
            self.next_part();
            // Without a header of its own, the header before it applies.
            self.part = headed;
        }
        self.part.kernel_at = Some(place);
    }

    fn next_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.cpu = None;
        if part == BootSamples::default() {
            return;
        }
        // Two files of one boot, one after the other.
        match self.stacks.parts.iter_mut().find(|known| known.is_boot_of(&part)) {
            Some(known) => known.join(part),
            None => self.stacks.parts.push(part),
        }
    }

    /// Adds a sample; `None` if a count overflows. Where one address alone is 0, as `llvm-profgen` takes it, that
    /// is code outside of the image; an entry of two zeros is one that the CPU did not fill.
    fn sample(&mut self, words: &SampleLine, count: u64, cpu: Option<u32>) -> Option<()> {
        let stacks = &mut self.stacks;
        stacks.sample_lines += 1;
        stacks.samples = stacks.samples.checked_add(count)?;
        stacks.longest = stacks.longest.max(words.entries.len());
        stacks.speculated = stacks.speculated.checked_add(count.checked_mul(words.speculated)?)?;
        stacks.entries = stacks.entries.checked_add(count.checked_mul(words.entries.len() as u64)?)?;
        self.part.count(count, cpu)?;
        let is_empty = |(source, target): &(u64, u64)| *source == 0 && *target == 0;
        let mut segments = words.entries.split(is_empty);
        let backward =
            segments.try_fold(0_u64, |sum, segment| sum.checked_add(self.part.segment(segment, count)?))?;
        let empty = words.entries.iter().filter(|entry| is_empty(entry)).count();
        stacks.backward_runs = stacks.backward_runs.checked_add(backward)?;
        stacks.empty_entries = stacks.empty_entries.checked_add(count.checked_mul(empty as u64)?)?;
        Some(())
    }
}

impl UnparsedLines {
    fn add(&mut self, number: u64, line: &str) {
        self.lines += 1;
        self.first.get_or_insert_with(|| (number, beginning(line)));
    }
}

/// Parsed line of a sample.
struct SampleLine {
    cpu: Option<u32>,
    /// Taken branches.
    entries: Vec<(u64, u64)>,
    /// Entries that are no taken branches.
    speculated: u64,
    /// The line has entries.
    branches: bool,
}

/// Parses a line; `None` if it is not part of a sample, or damaged.
fn words(line: &str, number: u64) -> Result<Option<SampleLine>, PerfTextError> {
    let mut words = SampleLine { cpu: None, entries: Vec::new(), speculated: 0, branches: false };
    let mut known = line.is_empty();
    for word in line.split_whitespace() {
        if let Some(entry) = entry(word) {
            words.branches = true;
            match entry {
                BranchEntry::Taken(source, target) => words.entries.push((source, target)),
                BranchEntry::NotTaken => words.speculated += 1,
            }
        } else if word.starts_with("0x") && word.contains('/') {
            return Ok(None);
        } else if word.starts_with("buildid:") && word.contains("/buildid:") {
            return Err(PerfTextError::BuildId { line: number });
        } else if let Some(cpu) = cpu_number(word).filter(|_| !words.branches) {
            // A thread's name comes before it and may look like it.
            words.cpu = Some(cpu);
            known = true;
        } else {
            // A code address, alone on the line of a call chain; a short word may be anything.
            known |= (word == "0" || word.len() > 3) && hex(word).is_some();
            known |= line == word && word.bytes().all(|byte| byte.is_ascii_digit());
        }
    }
    Ok((known || words.branches).then_some(words))
}

/// Entry of a branch stack.
enum BranchEntry {
    /// Address of a branch, and its target.
    Taken(u64, u64),
    /// Branch that was not taken, or taken by mistake and undone: straight code continues over it.
    NotTaken,
}

/// Parses `0xFROM/0xTO/…`. Without a third part it may have been cut off in an address. The third
/// part has the prediction (`P`, `M`, with `N` if it was not taken), a later one the speculation.
fn entry(word: &str) -> Option<BranchEntry> {
    let mut parts = word.split('/');
    let mut address = || hex(parts.next()?.strip_prefix("0x")?);
    let (source, target) = (address()?, address()?);
    let taken = !parts.next()?.contains('N') && !parts.any(|part| part == "SPEC_WRONG_PATH");
    Some(if taken { BranchEntry::Taken(source, target) } else { BranchEntry::NotTaken })
}

/// Parses `[003]`, of at least three digits.
fn cpu_number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('[')?.strip_suffix(']')?;
    let number = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().ok())?
}

/// Parses `… PERF_RECORD_MMAP -1/0: [0x…(0x…) @ 0xADDRESS]: x [kernel.kallsyms]_text`, and returns
/// the address of the named symbol.
fn kernel_place(line: &str) -> Option<u64> {
    let (record, _) = line.split_once("[kernel.kallsyms]_")?;
    let (_, offset) = record.split_once("@ ")?;
    hex(offset.split([']', ' ']).next()?.strip_prefix("0x")?)
}

fn hex(digits: &str) -> Option<u64> {
    // `from_str_radix` accepts a sign.
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()
}
