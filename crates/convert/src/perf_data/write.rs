//! Writer of files with samples that were made from exact counts of a recording, in the kernel's own
//! format: with branch stacks for tools and CPUs that have no other way to get them, or without.

use super::event::bit;
use super::kind;
use std::io::{self, Write};

/// Machine and form of a file to write.
#[derive(Debug, Clone, Default)]
pub struct WrittenMachine {
    /// Name of the machine.
    pub hostname: String,
    /// Release of its kernel.
    pub release: String,
    /// Build id of the kernel, of 20 bytes; all zero for none.
    pub build_id: [u8; 20],
    /// Address of the kernel's `_text`.
    pub text_at: u64,
    /// Number of online CPUs.
    pub cpus: u32,
    /// True to write the file as it comes through a pipe.
    pub is_pipe: bool,
    /// True to write an index of the hardware before each stack (`PERF_SAMPLE_BRANCH_HW_INDEX`).
    pub has_index: bool,
    /// True to write samples of instructions, without branches.
    pub is_plain: bool,
    /// Events between two samples, for the header: taken branches or instructions.
    pub period: u64,
}

/// Writer of a file in memory, sample by sample.
#[derive(Debug, Clone, Default)]
pub struct PerfDataWriter {
    machine: WrittenMachine,
    records: Vec<u8>,
    samples: u64,
}

/// A branch to write: source, target and flags (`struct perf_branch_entry`).
pub type WrittenBranch = (u64, u64, u64);

const ATTR_SIZE: u32 = 136;
const ID: u64 = 77;
/// Samples after which readers may sort what they have.
const ROUND: u64 = 10_000;

fn record(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[u8]) {
    out.extend(kind.to_le_bytes());
    out.extend(misc.to_le_bytes());
    out.extend((body.len() as u16 + 8).to_le_bytes());
    out.extend(body);
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn string(of: &str) -> Vec<u8> {
    let bytes = text(of);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

impl WrittenMachine {
    /// Appends the record of a sample: its number, its CPU and instruction, its branches.
    fn sample(&self, to: &mut Vec<u8>, number: u64, (cpu, ip): (u32, u64), branches: &[WrittenBranch]) {
        let mut body = words(&[ID, ip, 1 | 1 << 32, 1000 + number, cpu.into(), self.period.max(1)]);
        if !self.is_plain {
            body.extend(words(&[branches.len() as u64]));
            if self.has_index {
                body.extend(u64::MAX.to_le_bytes());
            }
            for (source, target, flags) in branches {
                body.extend(words(&[*source, *target, *flags]));
            }
        }
        record(to, kind::SAMPLE, 1, &body);
    }

    fn attr(&self) -> Vec<u8> {
        let (branches, branch_type) = match (self.is_plain, self.has_index) {
            (true, _) => (0, 0),
            (false, false) => (bit::BRANCH_STACK, 8),
            (false, true) => (bit::BRANCH_STACK, 8 | 1 << 17),
        };
        let sample_type =
            bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | branches;
        // Branches (`PERF_COUNT_HW_BRANCH_INSTRUCTIONS`), or cycles, since a time is what readers expect of
        // instructions; in a recording each takes the same.
        let (config, period) = (if self.is_plain { 0 } else { 4 }, self.period.max(1));
        // Users and hypervisors are excluded.
        let flags = 1 << 18 | 1 << 4 | 1 << 6;
        let mut attr =
            words(&[u64::from(ATTR_SIZE) << 32, config, period, sample_type, 0, flags, 0, 0, 0, branch_type]);
        attr.resize(ATTR_SIZE as usize, 0);
        attr
    }

    /// Returns the record of the kernel's place.
    fn kernel_map(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut map = words(&[u64::from(u32::MAX), self.text_at, 32 << 20, self.text_at]);
        map.extend(text("[kernel.kallsyms]_text"));
        map.extend(words(&[u64::from(u32::MAX), 0, 0, ID]));
        record(&mut out, kind::MMAP, 1, &map);
        out
    }

    /// Returns the features, each with its number.
    fn features(&self) -> Vec<(u64, Vec<u8>)> {
        let cpus = [self.cpus.to_le_bytes(), self.cpus.to_le_bytes()].concat();
        let mut id = u32::MAX.to_le_bytes().to_vec();
        id.extend(self.build_id);
        id.extend([20, 0, 0, 0]);
        id.extend(text("[kernel.kallsyms]"));
        let mut build_id = Vec::new();
        record(&mut build_id, kind::HEADER_BUILD_ID, 1 | 1 << 15, &id);
        let mut all = vec![
            (2, build_id),
            (3, string(&self.hostname)),
            (4, string(&self.release)),
            (6, string("x86_64")),
            (7, cpus),
        ];
        all.retain(|(number, _)| *number != 2 || self.build_id != [0; 20]);
        all
    }

    /// Returns all that comes before the samples in a pipe.
    fn pipe_header(&self) -> Vec<u8> {
        let mut out = b"PERFILE2".to_vec();
        out.extend(words(&[16]));
        record(&mut out, kind::HEADER_ATTR, 0, &[self.attr(), words(&[ID])].concat());
        for (number, bytes) in self.features() {
            match number {
                2 => out.extend(bytes),
                _ => record(&mut out, kind::HEADER_FEATURE, 0, &[words(&[number]), bytes].concat()),
            }
        }
        out.extend(self.kernel_map());
        out
    }
}

/// Writer of samples as they come, in the form that perf writes to a pipe (which it also reads from
/// a file).
#[derive(Debug)]
pub struct PerfPipeWriter<W> {
    machine: WrittenMachine,
    to: W,
    record: Vec<u8>,
    samples: u64,
}

impl<W: Write> PerfPipeWriter<W> {
    /// Writes all that comes before the samples. `to` should be buffered.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn begin(machine: WrittenMachine, mut to: W) -> io::Result<Self> {
        to.write_all(&machine.pipe_header())?;
        Ok(Self { machine, to, record: Vec::new(), samples: 0 })
    }

    /// Writes a sample: its CPU, its instruction, and its branches, newest first, at most some 2,000
    /// of them.
    ///
    /// # Errors
    /// Those of the output.
    pub fn sample(&mut self, cpu: u32, ip: u64, branches: &[WrittenBranch]) -> io::Result<()> {
        self.samples += 1;
        self.record.clear();
        self.machine.sample(&mut self.record, self.samples, (cpu, ip), branches);
        if self.samples % ROUND == 0 {
            record(&mut self.record, kind::FINISHED_ROUND, 0, &[]);
        }
        self.to.write_all(&self.record)
    }
}

impl PerfDataWriter {
    /// Begins a file without samples.
    pub fn new(machine: WrittenMachine) -> Self {
        Self { machine, ..Self::default() }
    }

    /// Adds a sample of a CPU: its instruction is the target of the newest branch. Branches come
    /// newest first, at most some 2,000 of them.
    pub fn sample(&mut self, cpu: u32, branches: &[WrittenBranch]) {
        self.samples += 1;
        let ip = branches.first().map_or(self.machine.text_at, |(_, target, _)| *target);
        self.machine.sample(&mut self.records, self.samples, (cpu, ip), branches);
    }

    /// Returns the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"PERFILE2".to_vec();
        if self.machine.is_pipe {
            out = self.machine.pipe_header();
            out.extend(&self.records);
            record(&mut out, kind::FINISHED_ROUND, 0, &[]);
            return out;
        }
        let (ids_at, attrs_at) = (104, 112);
        let data_at = attrs_at + u64::from(ATTR_SIZE) + 16;
        let features = self.machine.features();
        let data = [self.machine.kernel_map(), self.records.clone()].concat();
        let flags = features.iter().fold(0_u64, |flags, (number, _)| flags | 1 << number);
        let entry = u64::from(ATTR_SIZE) + 16;
        out.extend(words(&[104, entry, attrs_at, entry, data_at, data.len() as u64, 0, 0, flags, 0, 0, 0]));
        out.extend(words(&[ID]));
        out.extend(self.machine.attr());
        out.extend(words(&[ids_at, 8]));
        let end = data_at + data.len() as u64;
        out.extend(data);
        let mut at = end + 16 * features.len() as u64;
        for (_, bytes) in &features {
            out.extend(words(&[at, bytes.len() as u64]));
            at += bytes.len() as u64;
        }
        out.extend(features.into_iter().flat_map(|(_, bytes)| bytes));
        out
    }
}
