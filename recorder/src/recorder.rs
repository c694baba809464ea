//! What the watched instructions mean.

use crate::blocks::{BlockInfo, Blocks};
use crate::board::Board;
use crate::clock::{Clock, Differences};
use crate::counters::Counters;
use crate::cpus::{Cpus, Own};
use crate::data::Data;
use crate::edges::Edges;
use crate::functions::Functions;
use crate::io::Io;
use crate::plan::{Block, Hook, Planner};
use crate::regions::Regions;
use crate::stream::Stream;
use crate::tags::TagWriter;
use crate::threads::Threads;
use crate::user::Binaries;
use crate::writer::TraceWriter;
use crate::Failure;
use kerntune_isa::{Cpu, Ending, Guest, Insn, Isa};
use kerntune_layout::{FrontEnd, FrontEndConfig};
use kerntune_trace::{Event, FunctionKind, Health, RecorderSpec, Weights, VERSION};
use std::collections::HashMap;
use std::path::PathBuf;

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
    /// What belongs to the CPU that executes.
    pub(crate) own: Own,
    pub(crate) cpus: Cpus,
    /// Data caches, if accesses to data are followed.
    pub(crate) data: Option<Box<Data>>,
    /// Requests to block devices and network packets, if they are to be seen.
    pub(crate) io: Option<Box<Io>>,
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) tags: Option<TagWriter>,
    pub(crate) recording: bool,
    /// Until the first switch to another thread.
    pub(crate) booting: bool,
    /// Whether a system call was entered.
    programs: bool,
    pub(crate) edges: Edges,
    pub(crate) block_totals: Vec<u64>,
    /// Of each block, whether it ran since the first program began; nothing before that.
    pub(crate) used: Option<Vec<bool>>,
    /// Where the kernel keeps the offsets of what each CPU has one of, and the offsets once they were read.
    pub(crate) per_cpu: (Option<u64>, Vec<u64>),
    pub(crate) health: Health,
    pub(crate) notes: Vec<String>,
}

impl Recorder {
    /// Gets ready for a run on so many CPUs.
    pub fn new(spec: &RecorderSpec, cpus: usize) -> Result<Self, Failure> {
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
        let model = || match &spec.model {
            Some(text) => Ok::<_, Failure>(Some(FrontEnd::new(&FrontEndConfig::parse(text)?)?)),
            None => Ok(None),
        };
        let mut threads = Threads::new();
        let own = Own::new(0, model()?);
        let mut others = Vec::new();
        for _ in 1..cpus {
            others.push(Own::new(threads.unknown(), model()?));
        }
        let trace = match capture.functions {
            true => Some(TraceWriter::create(&output, capture.weights)?),
            false => None,
        };
        let tags = spec.tags.is_some().then(|| TagWriter::create(&output)).transpose()?;
        let functions = Functions::new(&spec.functions)?;
        if spec.stack_pointer && (functions.is_selection() || !spec.binaries.is_empty()) {
            let why =
                "the stack pointer says what is called where all kernel functions are traced, and no others";
            return Err(Failure(why.into()));
        }
        let binaries = Binaries::new(&spec.binaries, functions.unknown() + 1)?;
        let data = data(spec, cpus)?;
        let mut planner = Planner::new(functions, binaries, capture, own.model.is_some());
        planner.data = data.is_some();
        planner.unpacking = true;
        planner.stack_pointer = spec.stack_pointer;
        planner.directions = own.model.as_ref().is_some_and(FrontEnd::guesses_directions);
        planner.points = spec.points.iter().copied().zip(0..).collect();
        planner.tags = spec.tags;
        if let Some(stream) = &spec.stream {
            if cpus > 1 {
                return Err(Failure("instructions are written down one by one of one CPU only".into()));
            }
            planner.stream = Some(Stream::create(&output, stream)?);
        }
        Ok(Self {
            planner,
            blocks: Blocks::new(),
            pages: HashMap::new(),
            output,
            task: spec.task,
            threads,
            regions: Regions::new(own.model.as_ref().map(FrontEnd::second_level_events).unwrap_or_default()),
            clock: Clock::default(),
            differences: Differences::default(),
            own,
            cpus: Cpus::new(others),
            data,
            io: spec.io.map(|io| Box::new(Io::new(io))),
            trace,
            tags,
            recording: false,
            booting: true,
            programs: false,
            edges: Edges::new(if capture.edges { EDGE_BITS } else { 4 }),
            block_totals: Vec::new(),
            used: None,
            per_cpu: (spec.per_cpu, Vec::new()),
            health: Health::default(),
            notes: Vec::new(),
        })
    }

    /// A block was translated, whose first instruction is in that page of the host's memory: appends
    /// what is to happen when it runs.
    pub fn translate(&mut self, insns: &[Insn], host_page: u64, cpu: &mut dyn Cpu, hooks: &mut Vec<Hook>) {
        let linked;
        let insns = match self.runs_below_its_address(insns) {
            true => {
                let up = |insn: &Insn| Insn { address: insn.address + Guest::IMAGE_OFFSET, ..*insn };
                linked = insns.iter().map(up).collect::<Vec<_>>();
                &linked
            }
            false => insns,
        };
        let (Some(first), Some(last)) = (insns.first(), insns.last()) else { return };
        let user = !Guest::is_kernel(first.address);
        self.planner.unpacking &= user && !self.is_below_its_address(first);
        // Not by its address: what boots the machine runs at low ones, too.
        let function = self.planner.functions.starting(first.address);
        self.programs |= function.map(|of| self.planner.functions.kind(of)) == Some(FunctionKind::Syscall);
        let space = if user {
            let next = self.pages.len() as u64 + 1;
            *self.pages.entry(host_page).or_insert(next)
        } else {
            0
        };
        let (ending, flow) = Guest::ending(last);
        let id = self.blocks.intern(BlockInfo {
            start: first.address,
            last: last.address,
            end: last.end(),
            target: match ending {
                Ending::Jump { target } => target.unwrap_or(0),
                _ => 0,
            },
            offsets: insns.iter().map(|insn| (insn.address - first.address) as u16).collect(),
            flow,
            refusal: Guest::refusal(last, user),
            user,
            space,
        });
        let page = if user { self.planner.binaries.identify(first.address, cpu) } else { None };
        let Some(info) = self.blocks.get(id) else { return };
        self.planner.plan(&Block { id, info, insns, ending, page }, hooks);
    }

    /// Whether a program asks for something for the first time, and [`Self::programs_begin`] is to be called.
    pub fn awaits_programs(&self) -> bool {
        self.used.is_none() && self.programs
    }

    /// The first program runs: what counts say from here on is not the boot's.
    pub fn programs_begin(&mut self, counts: &mut [&mut dyn Counters]) {
        self.used = Some(Vec::new());
        for counts in counts {
            counts.clear(self.blocks.len());
        }
    }

    /// Notes which blocks ran since counts were cleared.
    pub(crate) fn note_used(&mut self, counts: &mut [&mut dyn Counters]) {
        let Some(used) = &mut self.used else { return };
        used.resize(self.blocks.len(), false);
        for counts in counts {
            counts.each(self.blocks.len(), &mut |block, _| {
                if let Some(used) = used.get_mut(block) {
                    *used = true;
                }
            });
        }
    }

    /// Whether this is code of the kernel's image that runs at its physical address, as its first code does. QEMU's blocks do not
    /// depend on where they are, and it uses them for the same code at the kernel's addresses later on: thunks, which all
    /// code shares.
    fn runs_below_its_address(&self, insns: &[Insn]) -> bool {
        let covered = |insn| self.is_below_its_address(insn);
        self.booting && self.planner.functions.has_thunks() && insns.first().is_some_and(covered)
    }

    /// Whether the address is where the kernel's image lies in physical memory.
    fn is_below_its_address(&self, insn: &Insn) -> bool {
        let up = insn.address.checked_add(Guest::IMAGE_OFFSET);
        up.is_some_and(|address| self.planner.functions.covers(address))
    }

    /// Appends an event that happens before the instruction with `rest` instructions to the end of
    /// its block.
    #[inline]
    pub(crate) fn emit(&mut self, board: &Board, rest: u64, event: Event) -> Result<(), Failure> {
        if !self.recording {
            return Ok(());
        }
        match event {
            Event::Enter { function, .. } => self.own.user = function > self.planner.functions.unknown(),
            Event::Switch { .. } => self.own.user = false,
            Event::Leave => self.own.user = true,
            _ => {}
        }
        self.settle_if_wide(board, rest);
        let weights = self.weigh();
        self.append(self.now(board, rest), weights, event)
    }

    /// Instructions of all CPUs before the one with `rest` instructions to the end of the block that runs.
    #[inline]
    pub(crate) fn now(&self, board: &Board, rest: u64) -> u64 {
        (self.cpus.elsewhere + board.total()).saturating_sub(rest)
    }

    /// Writes an event that happens after so many instructions.
    #[inline]
    pub(crate) fn append(&mut self, at: u64, weights: Weights, event: Event) -> Result<(), Failure> {
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
        let now = self.own.weights();
        let before = std::mem::replace(&mut self.own.weighed, now);
        Weights {
            taken_branches: now.taken_branches - before.taken_branches,
            l1i_misses: now.l1i_misses - before.l1i_misses,
            itlb_misses: now.itlb_misses - before.itlb_misses,
        }
    }

    pub(crate) fn begin_chunk(&mut self, at: u64) {
        if let Some(trace) = &mut self.trace {
            let waiting = self.cpus.waiting();
            let running = (self.cpus.current() as u32, self.own.user);
            trace.begin(at, self.clock.at(at), running, waiting, self.regions.open(), &self.threads);
        }
    }
}

/// The data caches of a model that has them, if they are asked for.
fn data(spec: &RecorderSpec, cpus: usize) -> Result<Option<Box<Data>>, Failure> {
    let (Some(data), Some(text)) = (spec.data, &spec.model) else { return Ok(None) };
    let config = FrontEndConfig::parse(text)?;
    let caches = config.data.ok_or_else(|| Failure(format!("the model {} has no [data]", config.name)))?;
    Ok(Some(Box::new(Data::new(&caches, config.l1i.line_bytes, data, cpus))))
}
