//! What the watched instructions mean.

use crate::blocks::{BlockInfo, Blocks};
use crate::clock::{Clock, Differences};
use crate::edges::Edges;
use crate::functions::Functions;
use crate::plan::{Block, Hook, Planner};
use crate::regions::Regions;
use crate::tags::TagWriter;
use crate::threads::Threads;
use crate::translate::{self, Insn, Refusal};
use crate::user::Binaries;
use crate::writer::TraceWriter;
use crate::Failure;
use kerntune_layout::{FrontEnd, FrontEndConfig};
use kerntune_trace::{Event, Health, RecorderSpec, Weights, VERSION};
use std::collections::HashMap;
use std::path::PathBuf;

/// Counters that translated code updates by itself, one set per virtual CPU.
// QEMU multiplies by the size, by a shift if it can.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Board {
    /// Kernel instructions of all blocks begun.
    pub kernel: u64,
    /// User instructions of all blocks begun.
    pub user: u64,
    /// Number of the last block that said it, see [`Recorder::running`].
    pub block: u64,
    /// Address that follows the last completed block; 0 where going elsewhere is no branch. Kept only
    /// where branches are followed.
    pub next: u64,
    /// The call flag, see [`crate::plan`].
    pub call: u64,
}

impl Board {
    pub(crate) fn total(&self) -> u64 {
        self.kernel + self.user
    }
}

/// General registers, in the order of their encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// `rax`, encoded as 0.
    Rax,
    /// `rcx`, encoded as 1.
    Rcx,
    /// `rdx`, encoded as 2.
    Rdx,
    /// `rbx`, encoded as 3.
    Rbx,
    /// `rsp`, encoded as 4.
    Rsp,
    /// `rbp`, encoded as 5.
    Rbp,
    /// `rsi`, encoded as 6.
    Rsi,
    /// `rdi`, encoded as 7.
    Rdi,
    /// `r8`, encoded as 8.
    R8,
    /// `r9`, encoded as 9.
    R9,
    /// `r10`, encoded as 10.
    R10,
    /// `r11`, encoded as 11.
    R11,
    /// `r12`, encoded as 12.
    R12,
    /// `r13`, encoded as 13.
    R13,
    /// `r14`, encoded as 14.
    R14,
    /// `r15`, encoded as 15.
    R15,
}

impl Register {
    /// All of them.
    pub const ALL: [Self; 16] = {
        use Register::*;
        [Rax, Rcx, Rdx, Rbx, Rsp, Rbp, Rsi, Rdi, R8, R9, R10, R11, R12, R13, R14, R15]
    };

    /// The same register as the decoder calls it.
    pub fn decoded(register: iced_x86::Register) -> Option<Self> {
        let number = register.is_gpr64().then(|| register.number())?;
        Self::ALL.get(number).copied()
    }
}

/// The virtual CPU, where it stopped.
pub trait Cpu {
    /// A register's value.
    fn register(&mut self, register: Register) -> u64;
    /// Reads memory at a virtual address; false if it is not mapped.
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool;
}

/// Pairs of blocks for which edges are counted: 2^20, in 16 MiB.
const EDGE_BITS: u32 = 20;

/// The state of one recording. What happens is in `calls`, `follow` and `marks`.
pub struct Recorder {
    pub(crate) planner: Planner,
    pub(crate) blocks: Blocks,
    /// Numbers of host pages, in order of appearance: host addresses differ from run to run.
    pages: HashMap<u64, u64>,
    pub(crate) output: PathBuf,
    pub(crate) task: kerntune_trace::TaskOffsets,
    pub(crate) threads: Threads,
    pub(crate) regions: Regions,
    pub(crate) clock: Clock,
    pub(crate) differences: Differences,
    /// The block announced last, and the count of instructions then.
    pub(crate) announced: Option<(u64, u32)>,
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) tags: Option<TagWriter>,
    pub(crate) recording: bool,
    /// What the event before says of the CPU's mode.
    pub(crate) user: bool,
    pub(crate) edges: Edges,
    pub(crate) block_totals: Vec<u64>,
    pub(crate) taken: [u64; 2],
    pub(crate) model: Option<FrontEnd>,
    /// Where the code began that ran straight on and that the model was not told of yet; 0 if none did.
    pub(crate) range_start: u64,
    /// What [`Recorder::weights`] were at the event before.
    pub(crate) weighed: Weights,
    pub(crate) health: Health,
    pub(crate) notes: Vec<String>,
}

impl Recorder {
    /// Gets ready for a run.
    pub fn new(spec: &RecorderSpec) -> Result<Self, Failure> {
        if spec.version != VERSION {
            return Err(Failure(format!(
                "the machine speaks version {}, this recorder version {VERSION}: build both again",
                spec.version
            )));
        }
        let RecorderSpec { capture, .. } = *spec;
        if capture.weights && (spec.model.is_none() || !capture.functions) {
            return Err(Failure("weights need a front-end model and the trace of functions".into()));
        }
        let output = PathBuf::from(&spec.output);
        let model = match &spec.model {
            Some(text) => Some(FrontEnd::new(&FrontEndConfig::parse(text)?)?),
            None => None,
        };
        let trace = match capture.functions {
            true => Some(TraceWriter::create(&output, capture.weights)?),
            false => None,
        };
        let tags = spec.tags.is_some().then(|| TagWriter::create(&output)).transpose()?;
        let functions = Functions::new(&spec.functions)?;
        let binaries = Binaries::new(&spec.binaries, functions.unknown() + 1)?;
        let mut planner = Planner::new(functions, binaries, capture, model.is_some());
        planner.points = spec.points.iter().copied().zip(0..).collect();
        planner.tags = spec.tags;
        Ok(Self {
            planner,
            blocks: Blocks::new(),
            pages: HashMap::new(),
            output,
            task: spec.task,
            threads: Threads::new(),
            regions: Regions::new(model.as_ref().map(FrontEnd::deeper_events).unwrap_or_default()),
            clock: Clock::default(),
            differences: Differences::default(),
            announced: None,
            trace,
            tags,
            recording: false,
            user: true,
            edges: Edges::new(if capture.edges { EDGE_BITS } else { 4 }),
            block_totals: Vec::new(),
            taken: [0; 2],
            model,
            range_start: 0,
            weighed: Weights::NONE,
            health: Health::default(),
            notes: Vec::new(),
        })
    }

    /// A block was translated, whose first instruction is in that page of the host's memory: appends
    /// what is to happen when it runs.
    pub fn translate(&mut self, insns: &[Insn], host_page: u64, cpu: &mut dyn Cpu, hooks: &mut Vec<Hook>) {
        let (Some(first), Some(last)) = (insns.first(), insns.last()) else { return };
        let user = !translate::is_kernel(first.address);
        let space = if user {
            let next = self.pages.len() as u64 + 1;
            *self.pages.entry(host_page).or_insert(next)
        } else {
            0
        };
        let (ending, flow) = translate::ending(last);
        let id = self.blocks.intern(BlockInfo {
            start: first.address,
            last: last.address,
            end: last.end(),
            offsets: insns.iter().map(|insn| (insn.address - first.address) as u16).collect(),
            flow,
            refusal: Refusal::of(last, user),
            user,
            space,
        });
        let page = if user { self.planner.binaries.identify(first.address, cpu) } else { None };
        let Some(info) = self.blocks.get(id) else { return };
        self.planner.plan(&Block { id, info, insns, ending, page }, hooks);
    }

    /// Appends an event that happens before the instruction with `rest` instructions to the end of
    /// its block.
    #[inline]
    pub(crate) fn emit(&mut self, board: &Board, rest: u64, event: Event) -> Result<(), Failure> {
        if !self.recording {
            return Ok(());
        }
        match event {
            Event::Enter { function, .. } => self.user = function > self.planner.functions.unknown(),
            Event::Switch { .. } => self.user = false,
            Event::Leave => self.user = true,
            _ => {}
        }
        self.settle_if_wide(board, rest);
        let weights = self.weigh();
        let at = board.total() - rest;
        if let Some(trace) = &mut self.trace {
            if trace.push(at, weights, event) {
                trace.close()?;
                self.begin_chunk(at);
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn settle_if_wide(&mut self, board: &Board, rest: u64) {
        if self.planner.capture.weights {
            self.settle(board, rest);
        }
    }

    /// What passed since the event before, in a wide trace.
    #[inline]
    pub(crate) fn weigh(&mut self) -> Weights {
        if !self.planner.capture.weights {
            return Weights::NONE;
        }
        let now = self.weights();
        let before = std::mem::replace(&mut self.weighed, now);
        Weights {
            taken_branches: now.taken_branches - before.taken_branches,
            l1i_misses: now.l1i_misses - before.l1i_misses,
            itlb_misses: now.itlb_misses - before.itlb_misses,
        }
    }

    pub(crate) fn begin_chunk(&mut self, at: u64) {
        if let Some(trace) = &mut self.trace {
            trace.begin(at, self.clock.at(at), self.user, self.regions.open(), &self.threads);
        }
    }
}
