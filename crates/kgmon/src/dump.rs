//! Reader and writer for dumps of kgmon, in the format of `embedded/kernel/kgmon/format.h`. It does no I/O.

use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"KTKGMON\0";
const END: u64 = u64::from_le_bytes(*b"KGMONEND");
const VERSION: u32 = 1;
/// Size of `struct kg_dump_header`, version 1.
const HEADER: usize = 280;
const ARC: usize = 24;
const SAMPLE: usize = 16;
const MODULE: usize = 80;
const TRAILER: usize = 24;

/// Counts since the last reset, at the moment of the dump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KgmonDump {
    /// Number of the dump since the module was loaded, from 1.
    pub sequence: u64,
    /// Calls were being counted.
    pub counting: bool,
    /// The sampling timer was running.
    pub sampling: bool,
    /// Kernel functions called the module directly, not through ftrace's trampoline.
    pub direct: bool,
    /// Calls were missed while counting was on, because ftrace was switched off. Counts are too
    /// low.
    pub stalled: bool,
    /// The counts were reset with this dump, so no later dump contains them.
    pub taken: bool,
    /// The timer's period was random; otherwise it was in step with the kernel's tick.
    pub random: bool,
    /// Some functions of a module loaded in the meantime were not counted, or the addresses of
    /// modules are unknown.
    pub modules_missed: bool,
    /// Begin and end of the kernel's code, if they were given when the module was loaded.
    pub text: Option<(u64, u64)>,
    /// Address of `register_ftrace_function`, from which the kernel's load address follows (KASLR).
    pub anchor: u64,
    /// `CLOCK_REALTIME` at the dump, in ns.
    pub real_ns: u64,
    /// `CLOCK_MONOTONIC` at the dump, in ns.
    pub mono_ns: u64,
    /// `CLOCK_MONOTONIC` at the last reset or the first start, in ns.
    pub since_ns: u64,
    /// Time during which calls were counted since then, in ns.
    pub counting_ns: u64,
    /// Time during which the timer ran since then, in ns.
    pub sampling_ns: u64,
    /// Mean time between two samples of a CPU, in ns.
    pub period_ns: u64,
    /// Period of the kernel's tick, in ns.
    pub tick_ns: u64,
    /// Resolution of the kernel's timers, in ns.
    pub resolution_ns: u64,
    /// Calls that are in no count, because their arc found no space.
    pub lost_calls: u64,
    /// Samples that are only in `kernel_samples`, because their address found no space.
    pub lost_samples: u64,
    /// Timer expiries that coincided with another one.
    pub late_samples: u64,
    /// Samples in user mode.
    pub user_samples: u64,
    /// Samples of idle CPUs.
    pub idle_samples: u64,
    /// Samples in the kernel: `samples` and `lost_samples`.
    pub kernel_samples: u64,
    /// Capacity for arcs.
    pub arc_capacity: u64,
    /// Capacity for addresses of samples.
    pub sample_capacity: u64,
    /// Memory that the module uses on all CPUs, in bytes.
    pub memory_bytes: u64,
    /// Number of possible CPUs.
    pub possible_cpus: u32,
    /// Number of online CPUs.
    pub online_cpus: u32,
    /// Release of the kernel (`uname -r`).
    pub release: String,
    /// Call counts by caller and callee, sorted, without duplicates.
    pub arcs: Vec<CallSiteCount>,
    /// Sample counts by address, sorted, without duplicates.
    pub samples: Vec<SampleCount>,
    /// Address ranges of modules, including unloaded ones.
    pub modules: Vec<ModuleRange>,
}

/// Number of calls from one place to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSiteCount {
    /// Return address, just after the call instruction. For a tail call it is the return address of
    /// the previous call.
    pub caller: u64,
    /// Address near the start of the called function, where it calls ftrace.
    pub callee: u64,
    /// Number of calls.
    pub calls: u64,
}

/// Number of samples at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleCount {
    /// Address of the next instruction to execute.
    pub ip: u64,
    /// Number of samples.
    pub count: u64,
}

/// Address range of a module's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleRange {
    /// Name of the module.
    pub name: String,
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// The module was unloaded since the last reset.
    pub gone: bool,
}

/// Error for bytes that are no valid dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum DumpFormatError {
    #[error("not a dump of kgmon: it does not begin with its magic number")]
    Magic,
    #[error("a dump of version {0}; this program reads version {VERSION}: take the module and the program of one release")]
    Version(u32),
    #[error("damaged: {has} bytes, where its header says {expected}")]
    Length { has: usize, expected: u64 },
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// Reads words from the front; the caller has checked all lengths. Missing bytes read as 0.
struct DumpReader<'a>(&'a [u8]);

impl DumpReader<'_> {
    fn u64(&mut self) -> u64 {
        let (word, rest) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        self.0 = rest;
        u64::from_le_bytes(*word)
    }

    fn u32(&mut self) -> u32 {
        let (word, rest) = self.0.split_first_chunk().unwrap_or((&[0; 4], &[]));
        self.0 = rest;
        u32::from_le_bytes(*word)
    }

    /// Reads a string of printable characters up to a NUL, from a field of `size` bytes.
    fn text(&mut self, size: usize) -> Result<String, DumpFormatError> {
        let (text, rest) = self.0.split_at(size.min(self.0.len()));
        self.0 = rest;
        let end = text.iter().position(|&byte| byte == 0);
        let text = end.map(|end| &text[..end]).filter(|text| text.iter().all(u8::is_ascii_graphic));
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        text.map(str::to_string).ok_or(DumpFormatError::Damaged("it has a name that is not valid"))
    }
}

/// Appends words and strings to a dump.
struct DumpWriter(Vec<u8>);

impl DumpWriter {
    fn u32(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Writes a string into a field of `size` bytes; cuts it so that a NUL always ends it.
    fn text(&mut self, text: &str, size: usize) {
        let taken = &text.as_bytes()[..text.len().min(size - 1)];
        self.0.extend(taken);
        self.0.resize(self.0.len() + size - taken.len(), 0);
    }
}

/// Writes the trailer of a dump into its last bytes: length, checksum, magic number.
#[doc(hidden)]
pub fn seal(bytes: &mut [u8]) {
    let Some(at) = bytes.len().checked_sub(TRAILER) else { return };
    let length = bytes.len() as u64;
    bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
    let sum = sum_of(&bytes[..at + 8]);
    bytes[at + 8..at + 16].copy_from_slice(&sum.to_le_bytes());
    bytes[at + 16..].copy_from_slice(&END.to_le_bytes());
}

/// Computes 64-bit FNV-1a over 64-bit words.
fn sum_of(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
        (sum ^ DumpReader(word).u64()).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl KgmonDump {
    /// Parses a dump.
    ///
    /// # Errors
    /// [`DumpFormatError`] for anything but a complete dump of a known version.
    pub fn read(bytes: &[u8]) -> Result<Self, DumpFormatError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(DumpFormatError::Magic) };
        let mut words = DumpReader(rest);
        let version = words.u32();
        if bytes.len() >= 12 && version != VERSION {
            return Err(DumpFormatError::Version(version));
        }
        if bytes.len() < HEADER + TRAILER {
            return Err(DumpFormatError::Length { has: bytes.len(), expected: (HEADER + TRAILER) as u64 });
        }
        if words.u32() as usize != HEADER {
            return Err(DumpFormatError::Damaged("its header has the wrong size"));
        }
        let flags = words.u64();
        let flag = |bit: u32| flags >> bit & 1 == 1;
        let sequence = words.u64();
        let text = (words.u64(), words.u64());
        let mut dump = Self {
            sequence,
            counting: flag(0),
            sampling: flag(1),
            direct: flag(2),
            stalled: flag(3),
            taken: flag(4),
            random: flag(5),
            modules_missed: flag(6),
            text: (text.0 < text.1).then_some(text),
            anchor: words.u64(),
            real_ns: words.u64(),
            mono_ns: words.u64(),
            since_ns: words.u64(),
            counting_ns: words.u64(),
            sampling_ns: words.u64(),
            period_ns: words.u64(),
            tick_ns: words.u64(),
            resolution_ns: words.u64(),
            lost_calls: words.u64(),
            lost_samples: words.u64(),
            late_samples: words.u64(),
            user_samples: words.u64(),
            idle_samples: words.u64(),
            kernel_samples: words.u64(),
            arc_capacity: words.u64(),
            sample_capacity: words.u64(),
            memory_bytes: words.u64(),
            possible_cpus: words.u32(),
            online_cpus: words.u32(),
            ..Self::default()
        };
        let [arcs, samples, modules] = [words.u32(), words.u32(), words.u32()].map(|n| n as usize);
        words.u32();
        dump.release = words.text(64)?;
        // Cannot overflow: each number is below 2^32.
        let expected = HEADER as u64
            + arcs as u64 * ARC as u64
            + samples as u64 * SAMPLE as u64
            + modules as u64 * MODULE as u64
            + TRAILER as u64;
        if bytes.len() as u64 != expected {
            return Err(DumpFormatError::Length { has: bytes.len(), expected });
        }
        let mut trailer = DumpReader(&bytes[bytes.len() - TRAILER..]);
        if trailer.u64() != expected {
            return Err(DumpFormatError::Damaged("the length at its end is wrong"));
        }
        if trailer.u64() != sum_of(&bytes[..bytes.len() - 16]) {
            return Err(DumpFormatError::Damaged("its checksum is wrong"));
        }
        if trailer.u64() != END {
            return Err(DumpFormatError::Damaged("it does not end with a dump's end mark"));
        }
        dump.counts(&mut words, arcs, samples)?;
        for _ in 0..modules {
            let (start, end, gone) = (words.u64(), words.u64(), words.u64() != 0);
            if start > end {
                return Err(DumpFormatError::Damaged("a module ends before it begins"));
            }
            dump.modules.push(ModuleRange { name: words.text(56)?, start, end, gone });
        }
        Ok(dump)
    }

    /// Writes the dump as bytes, in the module's format.
    ///
    /// # Panics
    /// Panics if there are more than 2³² arcs, samples or modules.
    pub fn to_bytes(&self) -> Vec<u8> {
        let flags = [
            self.counting,
            self.sampling,
            self.direct,
            self.stalled,
            self.taken,
            self.random,
            self.modules_missed,
        ];
        let flags = flags.iter().rev().fold(0_u64, |word, &flag| word << 1 | u64::from(flag));
        let (start, end) = self.text.unwrap_or_default();
        let mut out = DumpWriter(MAGIC.to_vec());
        out.u32(VERSION);
        out.u32(HEADER as u32);
        out.words(&[
            flags,
            self.sequence,
            start,
            end,
            self.anchor,
            self.real_ns,
            self.mono_ns,
            self.since_ns,
        ]);
        out.words(&[self.counting_ns, self.sampling_ns, self.period_ns, self.tick_ns, self.resolution_ns]);
        out.words(&[self.lost_calls, self.lost_samples, self.late_samples, self.user_samples]);
        out.words(&[self.idle_samples, self.kernel_samples, self.arc_capacity, self.sample_capacity]);
        out.words(&[self.memory_bytes]);
        out.u32(self.possible_cpus);
        out.u32(self.online_cpus);
        for count in [self.arcs.len(), self.samples.len(), self.modules.len()] {
            out.u32(u32::try_from(count).expect("fewer than the kernel has instructions"));
        }
        out.u32(0);
        out.text(&self.release, 64);
        self.arcs.iter().for_each(|arc| out.words(&[arc.caller, arc.callee, arc.calls]));
        self.samples.iter().for_each(|sample| out.words(&[sample.ip, sample.count]));
        for module in &self.modules {
            out.words(&[module.start, module.end, u64::from(module.gone)]);
            out.text(&module.name, 56);
        }
        let mut bytes = out.0;
        bytes.resize(bytes.len() + TRAILER, 0);
        seal(&mut bytes);
        bytes
    }

    fn counts(&mut self, words: &mut DumpReader, arcs: usize, samples: usize) -> Result<(), DumpFormatError> {
        let mut sums = BTreeMap::new();
        for _ in 0..arcs {
            // An arc may occur twice if its creation was interrupted.
            let (caller, callee, calls) = (words.u64(), words.u64(), words.u64());
            add(&mut sums, (caller, callee), calls)?;
        }
        self.arcs = sums
            .into_iter()
            .map(|((caller, callee), calls)| CallSiteCount { caller, callee, calls })
            .collect();
        let mut sums = BTreeMap::new();
        for _ in 0..samples {
            let (ip, count) = (words.u64(), words.u64());
            add(&mut sums, ip, count)?;
        }
        self.samples = sums.into_iter().map(|(ip, count)| SampleCount { ip, count }).collect();
        Ok(())
    }

    /// Adds a later dump of the same boot. The two dumps must not overlap, so the counts must have
    /// been reset in between. Times and counts are added; values that describe a moment are taken
    /// from the later dump.
    ///
    /// # Errors
    /// A dump of another boot or kernel, or counts that overflow.
    pub fn add(&self, later: &Self) -> Result<Self, DumpFormatError> {
        if (&self.release, self.anchor) != (&later.release, later.anchor) {
            return Err(DumpFormatError::Damaged("the two dumps are not of one boot of one kernel"));
        }
        let mut sums = BTreeMap::new();
        for arc in self.arcs.iter().chain(&later.arcs) {
            add(&mut sums, (arc.caller, arc.callee), arc.calls)?;
        }
        let arcs = sums
            .into_iter()
            .map(|((caller, callee), calls)| CallSiteCount { caller, callee, calls })
            .collect();
        let mut sums = BTreeMap::new();
        for sample in self.samples.iter().chain(&later.samples) {
            add(&mut sums, sample.ip, sample.count)?;
        }
        let samples = sums.into_iter().map(|(ip, count)| SampleCount { ip, count }).collect();
        let mut modules: Vec<ModuleRange> =
            self.modules.iter().filter(|module| module.gone).cloned().collect();
        modules.extend(later.modules.iter().cloned());
        Ok(Self {
            stalled: self.stalled || later.stalled,
            modules_missed: self.modules_missed || later.modules_missed,
            since_ns: self.since_ns,
            counting_ns: self.counting_ns.saturating_add(later.counting_ns),
            sampling_ns: self.sampling_ns.saturating_add(later.sampling_ns),
            lost_calls: self.lost_calls.saturating_add(later.lost_calls),
            lost_samples: self.lost_samples.saturating_add(later.lost_samples),
            late_samples: self.late_samples.saturating_add(later.late_samples),
            user_samples: self.user_samples.saturating_add(later.user_samples),
            idle_samples: self.idle_samples.saturating_add(later.idle_samples),
            kernel_samples: self.kernel_samples.saturating_add(later.kernel_samples),
            arcs,
            samples,
            modules,
            ..later.clone()
        })
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, more: u64) -> Result<(), DumpFormatError> {
    let sum = sums.entry(key).or_default();
    *sum = sum.checked_add(more).ok_or(DumpFormatError::Damaged("a count is larger than possible"))?;
    Ok(())
}

#[cfg(test)]
#[path = "dump_tests.rs"]
mod tests;
