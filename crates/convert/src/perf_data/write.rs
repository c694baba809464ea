//! Writer of files with branch stacks, for tests: no CPU at hand records any, but exact counts of a
//! recording give them, in the kernel's own format.

use super::event::bit;
use super::record::kind;

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
}

/// Writer of a file, sample by sample.
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
        let mut body =
            words(&[ID, ip, 1 | 1 << 32, 1000 + self.samples, cpu.into(), 1, branches.len() as u64]);
        if self.machine.has_index {
            body.extend(u64::MAX.to_le_bytes());
        }
        for (source, target, flags) in branches {
            body.extend(words(&[*source, *target, *flags]));
        }
        record(&mut self.records, kind::SAMPLE, 1, &body);
    }

    fn attr(&self) -> Vec<u8> {
        let sample_type =
            bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | bit::BRANCH_STACK;
        let branch_type = 8 | if self.machine.has_index { 1 << 17 } else { 0 };
        let mut attr =
            words(&[u64::from(ATTR_SIZE) << 32, 0, 1_000_003, sample_type, 0, 1 << 18, 0, 0, 0, branch_type]);
        attr.resize(ATTR_SIZE as usize, 0);
        attr
    }

    /// Returns the place of the kernel and the samples, as records.
    fn data(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut map = words(&[u64::from(u32::MAX), self.machine.text_at, 32 << 20, self.machine.text_at]);
        map.extend(text("[kernel.kallsyms]_text"));
        map.extend(words(&[u64::from(u32::MAX), 0, 0, ID]));
        record(&mut out, kind::MMAP, 1, &map);
        out.extend(&self.records);
        out
    }

    /// Returns the features, each with its number.
    fn features(&self) -> Vec<(u64, Vec<u8>)> {
        let cpus = [self.machine.cpus.to_le_bytes(), self.machine.cpus.to_le_bytes()].concat();
        let mut id = u32::MAX.to_le_bytes().to_vec();
        id.extend(self.machine.build_id);
        id.extend([20, 0, 0, 0]);
        id.extend(text("[kernel.kallsyms]"));
        let mut build_id = Vec::new();
        record(&mut build_id, kind::HEADER_BUILD_ID, 1 | 1 << 15, &id);
        let mut all = vec![
            (2, build_id),
            (3, string(&self.machine.hostname)),
            (4, string(&self.machine.release)),
            (6, string("x86_64")),
            (7, cpus),
        ];
        all.retain(|(number, _)| *number != 2 || self.machine.build_id != [0; 20]);
        all
    }

    /// Returns the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"PERFILE2".to_vec();
        if self.machine.is_pipe {
            out.extend(words(&[16]));
            record(&mut out, kind::HEADER_ATTR, 0, &[self.attr(), words(&[ID])].concat());
            for (number, bytes) in self.features() {
                match number {
                    2 => out.extend(bytes),
                    _ => record(&mut out, kind::HEADER_FEATURE, 0, &[words(&[number]), bytes].concat()),
                }
            }
            out.extend(self.data());
            record(&mut out, kind::FINISHED_ROUND, 0, &[]);
            return out;
        }
        let (ids_at, attrs_at) = (104, 112);
        let data_at = attrs_at + u64::from(ATTR_SIZE) + 16;
        let (data, features) = (self.data(), self.features());
        let flags = features.iter().fold(0_u64, |flags, (number, _)| flags | 1 << number);
        let entry = u64::from(ATTR_SIZE) + 16;
        out.extend(words(&[104, entry, attrs_at, entry, data_at, data.len() as u64, 0, 0, flags, 0, 0, 0]));
        out.extend(words(&[ID]));
        out.extend(self.attr());
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
