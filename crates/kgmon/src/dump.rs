//! A dump of kgmon: `kernel/kgmon/format.h` read (pure).

use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"KTKGMON\0";
const END: u64 = u64::from_le_bytes(*b"KGMONEND");
const VERSION: u32 = 1;
/// Of `struct kg_dump_header`, version 1.
const HEADER: usize = 280;
const ARC: usize = 24;
const SAMPLE: usize = 16;
const MODULE: usize = 80;
const TRAILER: usize = 24;

/// What counted until the moment of the dump, since the last reset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dump {
    /// Its number since the module was loaded, from 1.
    pub sequence: u64,
    /// Calls were being counted.
    pub counting: bool,
    /// The timer was running.
    pub sampling: bool,
    /// Functions of the kernel called the module directly, and not through ftrace's own trampoline.
    pub direct: bool,
    /// Counting was on, and a call was not counted: somebody switched ftrace off. Counts are too low.
    pub stalled: bool,
    /// What is in this dump is in no later one.
    pub taken: bool,
    /// The timer's period was random; otherwise it was in step with the kernel's tick.
    pub random: bool,
    /// Some functions of a module that was loaded meanwhile were not counted, or where modules were is not known.
    pub modules_missed: bool,
    /// Where the kernel's code is, if that was told when the module was loaded.
    pub text: Option<(u64, u64)>,
    /// Address of `register_ftrace_function`, which says where the kernel was put.
    pub anchor: u64,
    /// `CLOCK_REALTIME` of the dump, ns.
    pub real_ns: u64,
    /// `CLOCK_MONOTONIC` of the dump, ns.
    pub mono_ns: u64,
    /// `CLOCK_MONOTONIC` of the last reset or the first start, ns.
    pub since_ns: u64,
    /// How long calls were counted since then, ns.
    pub counting_ns: u64,
    /// How long the timer ran since then, ns.
    pub sampling_ns: u64,
    /// Mean time between two samples of a CPU, ns.
    pub period_ns: u64,
    /// The kernel's tick, ns.
    pub tick_ns: u64,
    /// What the kernel's timers can tell apart, ns.
    pub resolution_ns: u64,
    /// Calls whose arc found no room; they are in no count.
    pub lost_calls: u64,
    /// Samples whose address found no room; they are in `kernel_samples` only.
    pub lost_samples: u64,
    /// Expiries of the timer that came together with another one.
    pub late_samples: u64,
    /// Samples in user mode.
    pub user_samples: u64,
    /// Samples of a CPU that had nothing to do.
    pub idle_samples: u64,
    /// Samples in the kernel: those of `samples` and those lost.
    pub kernel_samples: u64,
    /// Arcs for which there is room.
    pub arc_capacity: u64,
    /// Addresses of samples for which there is room.
    pub sample_capacity: u64,
    /// Memory that the module holds, bytes, on all CPUs.
    pub memory_bytes: u64,
    /// CPUs that there may be.
    pub possible_cpus: u32,
    /// CPUs that were on.
    pub online_cpus: u32,
    /// The kernel's release (`uname -r`).
    pub release: String,
    /// Calls by place and function, in order; each pair once.
    pub arcs: Vec<Arc>,
    /// Samples by address, in order; each address once.
    pub samples: Vec<Sample>,
    /// Where modules' code is or was.
    pub modules: Vec<Module>,
}

/// Calls from one place to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arc {
    /// The return address: just after the call instruction. After a tail call it is that of the call before.
    pub caller: u64,
    /// In the function, at its beginning: where it calls ftrace.
    pub callee: u64,
    /// How many.
    pub calls: u64,
}

/// Samples at one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sample {
    /// The instruction that would have run next.
    pub ip: u64,
    /// How many.
    pub count: u64,
}

/// Where a module's code is or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Address of its first byte.
    pub start: u64,
    /// Address after its last byte.
    pub end: u64,
    /// It was unloaded since the last reset.
    pub gone: bool,
}

/// Why bytes are no dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// Other bytes.
    #[error("not a dump of kgmon: it does not begin with its magic number")]
    Magic,
    /// A later module's.
    #[error("a dump of version {0}; this program reads version {VERSION}: take the module and the program of one release")]
    Version(u32),
    /// Not all of it is there, or more than that.
    #[error("damaged: {has} bytes, where its header says {expected}")]
    Length {
        /// Bytes that there are.
        has: usize,
        /// Bytes that there should be.
        expected: u64,
    },
    /// Not what was written.
    #[error("damaged: {0}")]
    Damaged(&'static str),
}

/// Bytes that are read from the front; all lengths were checked before.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
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

    /// Printable characters up to a NUL, as the kernel has them.
    fn text(&mut self, size: usize) -> Result<String, DumpError> {
        let (text, rest) = self.0.split_at(size.min(self.0.len()));
        self.0 = rest;
        let end = text.iter().position(|&byte| byte == 0);
        let text = end.map(|end| &text[..end]).filter(|text| text.iter().all(u8::is_ascii_graphic));
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        text.map(str::to_string).ok_or(DumpError::Damaged("it has a name that is not valid"))
    }
}

/// Bytes that are written at the end.
struct Out(Vec<u8>);

impl Out {
    fn u32(&mut self, word: u32) {
        self.0.extend(word.to_le_bytes());
    }

    fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// What is too long is cut: there is always a NUL at its end.
    fn text(&mut self, text: &str, size: usize) {
        let taken = &text.as_bytes()[..text.len().min(size - 1)];
        self.0.extend(taken);
        self.0.resize(self.0.len() + size - taken.len(), 0);
    }
}

/// Writes the end of a dump into the last bytes of it: length, checksum, magic number.
#[doc(hidden)]
pub fn seal(bytes: &mut [u8]) {
    let Some(at) = bytes.len().checked_sub(TRAILER) else { return };
    let length = bytes.len() as u64;
    bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
    let sum = sum_of(&bytes[..at + 8]);
    bytes[at + 8..at + 16].copy_from_slice(&sum.to_le_bytes());
    bytes[at + 16..].copy_from_slice(&END.to_le_bytes());
}

/// 64-bit FNV-1a over words of 64 bits.
fn sum_of(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(0xcbf2_9ce4_8422_2325, |sum: u64, word| {
        (sum ^ Words(word).u64()).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Dump {
    /// Reads a dump.
    ///
    /// # Errors
    /// [`DumpError`] for anything but a whole dump of a version that is known.
    pub fn read(bytes: &[u8]) -> Result<Self, DumpError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(DumpError::Magic) };
        let mut words = Words(rest);
        let version = words.u32();
        if bytes.len() >= 12 && version != VERSION {
            return Err(DumpError::Version(version));
        }
        if bytes.len() < HEADER + TRAILER {
            return Err(DumpError::Length { has: bytes.len(), expected: (HEADER + TRAILER) as u64 });
        }
        if words.u32() as usize != HEADER {
            return Err(DumpError::Damaged("its header has the wrong size"));
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
            return Err(DumpError::Length { has: bytes.len(), expected });
        }
        let mut trailer = Words(&bytes[bytes.len() - TRAILER..]);
        if trailer.u64() != expected {
            return Err(DumpError::Damaged("the length at its end is wrong"));
        }
        if trailer.u64() != sum_of(&bytes[..bytes.len() - 16]) {
            return Err(DumpError::Damaged("its checksum is wrong"));
        }
        if trailer.u64() != END {
            return Err(DumpError::Damaged("it does not end with a dump's end mark"));
        }
        dump.counts(&mut words, arcs, samples)?;
        for _ in 0..modules {
            let (start, end, gone) = (words.u64(), words.u64(), words.u64() != 0);
            if start > end {
                return Err(DumpError::Damaged("a module ends before it begins"));
            }
            dump.modules.push(Module { name: words.text(56)?, start, end, gone });
        }
        Ok(dump)
    }

    /// The same as bytes, as the module writes it.
    ///
    /// # Panics
    /// More than 2³² arcs, samples or modules.
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
        let mut out = Out(MAGIC.to_vec());
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

    fn counts(&mut self, words: &mut Words, arcs: usize, samples: usize) -> Result<(), DumpError> {
        let mut sums = BTreeMap::new();
        for _ in 0..arcs {
            // An arc whose making was interrupted may be there twice.
            let (caller, callee, calls) = (words.u64(), words.u64(), words.u64());
            add(&mut sums, (caller, callee), calls)?;
        }
        self.arcs = sums.into_iter().map(|((caller, callee), calls)| Arc { caller, callee, calls }).collect();
        let mut sums = BTreeMap::new();
        for _ in 0..samples {
            let (ip, count) = (words.u64(), words.u64());
            add(&mut sums, ip, count)?;
        }
        self.samples = sums.into_iter().map(|(ip, count)| Sample { ip, count }).collect();
        Ok(())
    }

    /// Adds a later dump of the same kernel, of which nothing is in this one: what both counted together. Times and
    /// counts are added; what describes a moment is the later one's.
    ///
    /// # Errors
    /// Another kernel's dump, or sums that no kernel can have counted.
    pub fn add(&self, later: &Self) -> Result<Self, DumpError> {
        if (&self.release, self.anchor) != (&later.release, later.anchor) {
            return Err(DumpError::Damaged("the two dumps are not of one boot of one kernel"));
        }
        let mut sums = BTreeMap::new();
        for arc in self.arcs.iter().chain(&later.arcs) {
            add(&mut sums, (arc.caller, arc.callee), arc.calls)?;
        }
        let arcs = sums.into_iter().map(|((caller, callee), calls)| Arc { caller, callee, calls }).collect();
        let mut sums = BTreeMap::new();
        for sample in self.samples.iter().chain(&later.samples) {
            add(&mut sums, sample.ip, sample.count)?;
        }
        let samples = sums.into_iter().map(|(ip, count)| Sample { ip, count }).collect();
        let mut modules: Vec<Module> = self.modules.iter().filter(|module| module.gone).cloned().collect();
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

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, more: u64) -> Result<(), DumpError> {
    let sum = sums.entry(key).or_default();
    *sum = sum.checked_add(more).ok_or(DumpError::Damaged("a count is larger than possible"))?;
    Ok(())
}

#[cfg(test)]
#[path = "dump_tests.rs"]
mod tests;
