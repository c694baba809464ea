//! Events of a file (`struct perf_event_attr`), and the place of the fields in their records.

use super::fields::Fields;
use super::kind;

/// Bits of `sample_type`, in the order of `include/uapi/linux/perf_event.h`.
pub(super) mod bit {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const AUX: u64 = 1 << 20;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
    /// All bits with a known place.
    pub const KNOWN: u64 = (1 << 25) - 1;
}

/// Size of the first version of the structure (`PERF_ATTR_SIZE_VER0`).
const FIRST_SIZE: usize = 64;

const SAMPLE_ID_ALL: u64 = 1 << 18;
const FREQUENCY: u64 = 1 << 10;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;

/// Kind of what an event counts, as far as kerntune distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Cycles in which the CPU was not halted.
    Cycles,
    /// The kernel's timer of a CPU (`cpu-clock`), which runs in halted CPUs, too.
    CpuClock,
    /// The kernel's timer of a thread (`task-clock`).
    TaskClock,
    /// An event that is only there for its records of mappings and threads (`dummy`).
    Dummy,
    /// Anything else.
    Other,
}

/// An event of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfEvent {
    /// Name as perf shows it; without one, type and number.
    pub name: String,
    /// Kind of event.
    pub kind: EventKind,
    /// `type` and `config` of the event.
    pub event: (u32, u64),
    /// Samples per second if the event has a frequency, else events per sample.
    pub period: u64,
    /// True if [`Self::period`] is a frequency.
    pub is_frequency: bool,
    /// True if user code is not sampled.
    pub excludes_user: bool,
    /// True if the kernel is not sampled.
    pub excludes_kernel: bool,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_type: u64,
    pub(super) regs_user: u64,
    pub(super) regs_intr: u64,
    pub(super) sample_id_all: bool,
}

impl PerfEvent {
    /// Parses a `perf_event_attr`; `None` if it is too short.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < FIRST_SIZE {
            return None;
        }
        let word = |at: usize| Fields(bytes.get(at..).unwrap_or_default()).u64().unwrap_or_default();
        let kind = word(0) as u32;
        let (config, flags) = (word(8), word(40));
        // Hybrid CPUs have the PMU's number in the upper half.
        let (event_kind, name) = match (kind, config & 0xffff_ffff) {
            (0, 0) => (EventKind::Cycles, "cycles".to_owned()),
            (1, 0) => (EventKind::CpuClock, "cpu-clock".to_owned()),
            (1, 1) => (EventKind::TaskClock, "task-clock".to_owned()),
            (1, 9) => (EventKind::Dummy, "dummy".to_owned()),
            (0, 1) => (EventKind::Other, "instructions".to_owned()),
            _ => (EventKind::Other, format!("type {kind} config {config:#x}")),
        };
        Some(Self {
            name,
            kind: event_kind,
            event: (kind, config),
            period: word(16),
            is_frequency: flags & FREQUENCY != 0,
            excludes_user: flags & EXCLUDE_USER != 0,
            excludes_kernel: flags & EXCLUDE_KERNEL != 0,
            sample_type: word(24),
            read_format: word(32),
            branch_type: word(72),
            regs_user: word(80),
            regs_intr: word(96),
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
        })
    }

    /// Returns the layout of the records in an event's ring, by `sample_type` and
    /// `branch_sample_type` of its attribute; `sample_id_all` has to be set.
    pub fn of_ring(sample_type: u64, branch_type: u64) -> Self {
        Self {
            name: String::new(),
            kind: EventKind::Other,
            event: (0, 0),
            period: 0,
            is_frequency: false,
            excludes_user: false,
            excludes_kernel: false,
            sample_type,
            read_format: 0,
            branch_type,
            regs_user: 0,
            regs_intr: 0,
            sample_id_all: true,
        }
    }

    /// Returns the time of a record, in ns of the event's clock; `None` if it has none.
    pub fn time_of(&self, kind: u32, body: &[u8]) -> Option<u64> {
        let at = match kind {
            kind::SAMPLE => self.time_offset()?,
            _ => body.len().checked_sub(self.time_from_end()?)?,
        };
        Fields(body.get(at..)?).u64()
    }

    /// Returns true if samples have call chains.
    pub fn has_chains(&self) -> bool {
        self.sample_type & bit::CALLCHAIN != 0
    }

    /// Returns true if samples have the CPU's last branches.
    pub fn has_branches(&self) -> bool {
        self.sample_type & bit::BRANCH_STACK != 0
    }

    /// Returns true if samples have a copy of the user stack (`--call-graph dwarf`).
    pub fn has_user_stacks(&self) -> bool {
        self.sample_type & bit::STACK_USER != 0
    }

    /// Returns true if samples say when they were taken.
    pub fn has_time(&self) -> bool {
        self.sample_type & bit::TIME != 0
    }

    /// Returns true if samples name their CPU.
    pub fn has_cpu(&self) -> bool {
        self.sample_type & bit::CPU != 0
    }

    /// Returns the offset of the event's id in a sample's body; `None` if samples have no id.
    pub(super) fn id_offset(&self) -> Option<usize> {
        if self.sample_type & bit::IDENTIFIER != 0 {
            return Some(0);
        }
        (self.sample_type & bit::ID != 0).then(|| self.size_of(bit::IP | bit::TID | bit::TIME | bit::ADDR))
    }

    /// Returns the offset of the time in a sample's body; `None` if samples have no time.
    fn time_offset(&self) -> Option<usize> {
        let before = bit::IDENTIFIER | bit::IP | bit::TID;
        (self.sample_type & bit::TIME != 0).then(|| self.size_of(before))
    }

    /// Returns the distance of the time from the end of other records (`struct sample_id`).
    fn time_from_end(&self) -> Option<usize> {
        let after = bit::TIME | bit::ID | bit::STREAM_ID | bit::CPU | bit::IDENTIFIER;
        (self.sample_id_all && self.sample_type & bit::TIME != 0).then(|| self.size_of(after))
    }

    /// Returns the size of these fields, of eight bytes each, as far as they are recorded.
    fn size_of(&self, fields: u64) -> usize {
        8 * (self.sample_type & fields).count_ones() as usize
    }
}
