//! Samples, with all fields that a kernel may add.

use super::event::{bit, PerfEvent};
use super::fields::{words, Fields};
use std::ops::Range;

/// Marks in a call chain (`enum perf_callchain_context`).
const CONTEXT_MAX: u64 = -4095_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;

const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// Mode of the CPU at a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CpuMode {
    /// The kernel.
    #[default]
    Kernel,
    /// A program.
    User,
    /// The kernel of a virtual machine.
    GuestKernel,
    /// A program in a virtual machine.
    GuestUser,
    /// A hypervisor below the kernel, or not known.
    Other,
}

impl CpuMode {
    pub(super) fn of(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Other,
        }
    }
}

/// A branch that the CPU recorded (`struct perf_branch_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchRecord {
    /// Address of the branch; 0 in entries that the CPU left empty.
    pub source: u64,
    /// Address to which it went; 0 in entries that the CPU left empty.
    pub target: u64,
    flags: u64,
}

impl BranchRecord {
    /// Returns true if the CPU executed the branch on a wrong path and undid it.
    pub fn is_wrong_path(&self) -> bool {
        (self.flags >> 24) & 3 == 1
    }

    /// Returns true if source or target is missing.
    pub fn is_empty(&self) -> bool {
        self.source == 0 || self.target == 0
    }
}

/// A sample. Reused, so that its lists keep their memory.
#[derive(Debug, Clone, Default)]
pub struct PerfSample {
    /// Number of the event in [`super::PerfFile::events`].
    pub event: usize,
    /// Mode of the CPU.
    pub mode: CpuMode,
    /// Address of the instruction.
    pub ip: u64,
    /// Process id; 0 if not recorded.
    pub pid: u32,
    /// Thread id; 0 if not recorded.
    pub tid: u32,
    /// Time in ns of the recording's clock.
    pub time: Option<u64>,
    /// Number of the CPU.
    pub cpu: Option<u32>,
    /// Number of events that the sample stands for.
    pub period: Option<u64>,
    /// Kernel part of the call chain, innermost first, beginning with the instruction.
    pub kernel: Vec<u64>,
    /// User part of the call chain, innermost first.
    pub user: Vec<u64>,
    /// Number of addresses in other parts of the chain: of guests, of hypervisors.
    pub other_frames: u64,
    /// Raw bytes of a tracepoint's event; only of samples in files.
    pub raw: Vec<u8>,
    /// Position of these bytes in the record, after its header.
    pub raw_at: Range<usize>,
    /// Last branches, the newest first.
    pub branches: Vec<BranchRecord>,
    /// Size of the copy of the user stack, in bytes.
    pub user_stack: u64,
    /// Size of the part of the AUX area, in bytes.
    pub aux: u64,
}

impl PerfSample {
    /// Parses a sample of `event`, and adds the instruction to a chain that lacks it; `None` if the record
    /// is too short for its fields.
    pub(super) fn parse(&mut self, number: usize, event: &PerfEvent, misc: u16, body: &[u8]) -> Option<()> {
        self.read(event, misc, body)?;
        self.event = number;
        self.raw.extend_from_slice(body.get(self.raw_at.clone())?);
        // A chain without the instruction, or no chain.
        if self.mode == CpuMode::Kernel && self.kernel.first() != Some(&self.ip) {
            self.kernel.insert(0, self.ip);
        }
        if self.mode == CpuMode::User && self.user.first() != Some(&self.ip) {
            self.user.insert(0, self.ip);
        }
        Some(())
    }

    /// Reads the fields of a sample as the kernel wrote them, by `misc` of its header and what follows it.
    /// The lists keep their memory. `None` if the record is too short for its fields.
    pub fn read(&mut self, event: &PerfEvent, misc: u16, body: &[u8]) -> Option<()> {
        let mut fields = Fields(body);
        let has = |bit: u64| event.sample_type & bit != 0;
        self.kernel.clear();
        self.user.clear();
        self.branches.clear();
        self.raw.clear();
        (self.event, self.mode) = (0, CpuMode::of(misc));
        (self.ip, self.pid, self.tid) = (0, 0, 0);
        (self.time, self.cpu, self.period) = (None, None, None);
        (self.other_frames, self.user_stack, self.aux) = (0, 0, 0);
        self.raw_at = 0..0;
        if has(bit::IDENTIFIER) {
            fields.u64()?;
        }
        if has(bit::IP) {
            self.ip = fields.u64()?;
        }
        if has(bit::TID) {
            (self.pid, self.tid) = (fields.u32()?, fields.u32()?);
        }
        if has(bit::TIME) {
            self.time = Some(fields.u64()?);
        }
        for skipped in [bit::ADDR, bit::ID, bit::STREAM_ID] {
            if has(skipped) {
                fields.u64()?;
            }
        }
        if has(bit::CPU) {
            self.cpu = Some(fields.u32()?);
            fields.u32()?;
        }
        if has(bit::PERIOD) {
            self.period = Some(fields.u64()?);
        }
        if has(bit::READ) {
            skip_counters(&mut fields, event.read_format)?;
        }
        if has(bit::CALLCHAIN) {
            self.chain(&mut fields)?;
        }
        if has(bit::RAW) {
            let size = fields.u32()? as usize;
            let begin = body.len() - fields.0.len();
            fields.take(size)?;
            self.raw_at = begin..begin + size;
        }
        if has(bit::BRANCH_STACK) {
            self.branch_stack(&mut fields, event.branch_type)?;
        }
        if has(bit::REGS_USER) {
            skip_registers(&mut fields, event.regs_user)?;
        }
        if has(bit::STACK_USER) {
            let size = fields.u64()?;
            fields.take(usize::try_from(size).ok()?)?;
            if size > 0 {
                self.user_stack = fields.u64()?.min(size);
            }
        }
        if has(bit::WEIGHT | bit::WEIGHT_STRUCT) {
            fields.u64()?;
        }
        for skipped in [bit::DATA_SRC, bit::TRANSACTION] {
            if has(skipped) {
                fields.u64()?;
            }
        }
        if has(bit::REGS_INTR) {
            skip_registers(&mut fields, event.regs_intr)?;
        }
        for skipped in [bit::PHYS_ADDR, bit::CGROUP, bit::DATA_PAGE_SIZE, bit::CODE_PAGE_SIZE] {
            if has(skipped) {
                fields.u64()?;
            }
        }
        if has(bit::AUX) {
            self.aux = fields.u64()?;
            fields.take(usize::try_from(self.aux).ok()?)?;
        }
        Some(())
    }

    fn chain(&mut self, fields: &mut Fields) -> Option<()> {
        let count = fields.u64()?;
        let mut context = 0;
        for word in words(fields.words(count)?) {
            match (word, context) {
                (CONTEXT_MAX.., _) => context = word,
                (_, CONTEXT_KERNEL) => self.kernel.push(word),
                (_, CONTEXT_USER) => self.user.push(word),
                _ => self.other_frames += 1,
            }
        }
        Some(())
    }

    fn branch_stack(&mut self, fields: &mut Fields, branch_type: u64) -> Option<()> {
        let count = fields.u64()?;
        if branch_type & BRANCH_HW_INDEX != 0 {
            fields.u64()?;
        }
        let mut entries = words(fields.words(count.checked_mul(3)?)?);
        while let (Some(source), Some(target), Some(flags)) = (entries.next(), entries.next(), entries.next())
        {
            self.branches.push(BranchRecord { source, target, flags });
        }
        if branch_type & BRANCH_COUNTERS != 0 {
            fields.words(count)?;
        }
        Some(())
    }
}

/// Skips values of counters (`struct read_format`).
fn skip_counters(fields: &mut Fields, format: u64) -> Option<()> {
    let has = |bit: u64| u64::from(format & bit != 0);
    let each = 1 + has(READ_ID) + has(READ_LOST);
    let times = has(READ_ENABLED) + has(READ_RUNNING);
    if format & READ_GROUP == 0 {
        fields.words(each + times)?;
        return Some(());
    }
    let count = fields.u64()?;
    fields.words(times.checked_add(count.checked_mul(each)?)?)?;
    Some(())
}

/// Skips registers; none follow if the kernel had none to give.
fn skip_registers(fields: &mut Fields, mask: u64) -> Option<()> {
    if fields.u64()? != 0 {
        fields.words(mask.count_ones().into())?;
    }
    Some(())
}
