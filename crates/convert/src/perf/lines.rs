//! Line by line.

use super::{beginning, BranchStacks, Part, ReadError, Strange, LINE_MAX};

/// Reads line by line.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    stacks: BranchStacks,
    /// What the lines until now are a part of.
    part: Part,
    /// Lines until now.
    number: u64,
    /// Of a line that said it for the next sample: the number of that line, and what it says.
    count: Option<(u64, u64)>,
    cpu: Option<u32>,
    /// A header was seen: perf printed the text, and it prints no counts.
    has_header: bool,
    /// The records have the thread before them, as perf prints them.
    has_threads: bool,
}

impl Lines {
    /// Takes the next line.
    ///
    /// # Errors
    /// [`ReadError`], all but those of I/O.
    pub fn line(&mut self, line: &str) -> Result<(), ReadError> {
        self.number += 1;
        if line.len() as u64 > LINE_MAX {
            return Err(ReadError::LongLine { line: self.number });
        }
        let whole = line.trim_end_matches(['\n', '\r']);
        let line = line.trim();
        let overflow = |line: &str, number| ReadError::Overflow { line: number, text: beginning(line) };
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
            // What was said for this sample is not for the one after it.
            (self.count, self.cpu) = (None, None);
            self.stacks.strange.add(self.number, line);
        }
        Ok(())
    }

    /// What all lines came to.
    pub fn finish(mut self) -> BranchStacks {
        if let Some((number, count)) = self.count {
            self.stacks.strange.add(number, &count.to_string());
        }
        self.next_part();
        self.stacks
    }

    /// Samples that the line `stack` stands for. A count is one only before a stack as `export branches` writes them; before
    /// the stack of some process, it may be the number of another.
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

    /// The kernel is at `place` from here on.
    fn place(&mut self, place: u64) {
        if self.part.kernel_at == Some(place) {
            return;
        }
        if self.part.kernel_at.is_some() || self.part.samples > 0 {
            let part = &self.part;
            let headed = Part {
                hostname: part.hostname.clone(),
                release: part.release.clone(),
                cpus_online: part.cpus_online,
                ..Part::default()
            };
            self.next_part();
            // Without a header of its own it is what the header before it says.
            self.part = headed;
        }
        self.part.kernel_at = Some(place);
    }

    fn next_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        self.cpu = None;
        if part == Part::default() {
            return;
        }
        // Two files of one boot, one after the other.
        match self.stacks.parts.iter_mut().find(|known| known.is_boot_of(&part)) {
            Some(known) => known.join(part),
            None => self.stacks.parts.push(part),
        }
    }

    /// `None` if a count overflows.
    fn sample(&mut self, words: &Words, count: u64, cpu: Option<u32>) -> Option<()> {
        let stacks = &mut self.stacks;
        stacks.sample_lines += 1;
        stacks.samples = stacks.samples.checked_add(count)?;
        stacks.longest = stacks.longest.max(words.entries.len());
        stacks.speculated = stacks.speculated.checked_add(count.checked_mul(words.speculated)?)?;
        self.part.sample(&words.entries, count, cpu)
    }
}

impl Strange {
    fn add(&mut self, number: u64, line: &str) {
        self.lines += 1;
        self.first.get_or_insert_with(|| (number, beginning(line)));
    }
}

/// What a line of a sample says.
struct Words {
    cpu: Option<u32>,
    /// Branches that were taken.
    entries: Vec<(u64, u64)>,
    /// Entries that are no branches taken.
    speculated: u64,
    /// Whether it has any entry.
    branches: bool,
}

/// `None` for a line that is none of a sample, or damaged.
fn words(line: &str, number: u64) -> Result<Option<Words>, ReadError> {
    let mut words = Words { cpu: None, entries: Vec::new(), speculated: 0, branches: false };
    let mut known = line.is_empty();
    for word in line.split_whitespace() {
        if let Some(entry) = entry(word) {
            words.branches = true;
            match entry {
                Entry::Taken(source, target) => words.entries.push((source, target)),
                Entry::NotTaken => words.speculated += 1,
            }
        } else if word.starts_with("0x") && word.contains('/') {
            return Ok(None);
        } else if word.starts_with("buildid:") && word.contains("/buildid:") {
            return Err(ReadError::BuildId { line: number });
        } else if let Some(cpu) = cpu_number(word).filter(|_| !words.branches) {
            // Names of threads come before it and may look like it.
            words.cpu = Some(cpu);
            known = true;
        } else {
            // A code address, which the line of a call chain has alone; short words may be any.
            known |= (word == "0" || word.len() > 3) && hex(word).is_some();
            known |= line == word && word.bytes().all(|byte| byte.is_ascii_digit());
        }
    }
    Ok((known || words.branches).then_some(words))
}

/// An entry of a stack.
enum Entry {
    /// Where a branch was, and where it went to.
    Taken(u64, u64),
    /// A branch that the CPU took by mistake and undid, or one that it only passed: straight code goes on over it.
    NotTaken,
}

/// `0xFROM/0xTO/…`; without a third part it may have been cut off in an address. The third part says whether it was
/// predicted (`P`, `M`, with `N` if it was not taken), a later one how it was speculated.
fn entry(word: &str) -> Option<Entry> {
    let mut parts = word.split('/');
    let mut address = || hex(parts.next()?.strip_prefix("0x")?);
    let (source, target) = (address()?, address()?);
    let taken = !parts.next()?.contains('N') && !parts.any(|part| part == "SPEC_WRONG_PATH");
    Some(if taken { Entry::Taken(source, target) } else { Entry::NotTaken })
}

/// `[003]`, of three digits at least.
fn cpu_number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('[')?.strip_suffix(']')?;
    let number = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().ok())?
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
