//! Recorder: the meaning of the watched instructions.

use crate::blocks::{BlockInfo, BlockTable};
use crate::clock::{ClockErrors, GuestClock};
use crate::counters::BlockCounters;
use crate::cpus::{CpuStates, PerCpuState};
use crate::data::DataTracker;
use crate::edges::EdgeTable;
use crate::functions::TracedFunctions;
use crate::inline_counters::InlineCounters;
use crate::io::IoTracker;
use crate::plan::{BlockToPlan, Hook, HookPlanner};
use crate::progress::ProgressWriter;
use crate::regions::RegionTracker;
use crate::stream::StreamWriter;
use crate::tags::TagWriter;
use crate::threads::ShadowStacks;
use crate::user::TracedBinaries;
use crate::writer::TraceWriter;
use crate::Failure;
use kerntune_isa::{BlockEnding, GuestIsa, Insn, Isa, StoppedCpu};
use kerntune_layout::{FrontEnd, FrontEndConfig};
use kerntune_trace::loaded::LoadSpec;
use kerntune_trace::{EnterKind, Event, EventWeights, FunctionKind, RecorderSpec, RecordingHealth, VERSION};
use std::collections::HashMap;
use std::path::PathBuf;

/// log2 of the number of slots for edges (2^20, in 16 MiB).
const EDGE_BITS: u32 = 20;

/// State of one recording. Its methods are in `calls`, `follow`, `marks` and other modules.
pub struct Recorder {
    pub(crate) planner: HookPlanner,
    pub(crate) blocks: BlockTable,
    /// Numbers of host pages in order of appearance, since host addresses differ between runs.
    pages: HashMap<u64, u64>,
    pub(crate) output: PathBuf,
    pub(crate) progress: ProgressWriter,
    pub(crate) task: kerntune_trace::TaskOffsets,
    pub(crate) threads: ShadowStacks,
    pub(crate) regions: RegionTracker,
    pub(crate) clock: GuestClock,
    pub(crate) clock_errors: ClockErrors,
    /// State of the executing CPU.
    pub(crate) cpu_state: PerCpuState,
    pub(crate) cpus: CpuStates,
    /// Data caches, if data accesses are recorded.
    pub(crate) data: Option<Box<DataTracker>>,
    /// Requests and packets, if they are recorded.
    pub(crate) io: Option<Box<IoTracker>>,
    pub(crate) trace: Option<TraceWriter>,
    pub(crate) tags: Option<TagWriter>,
    pub(crate) recording: bool,
    /// True until the first context switch.
    pub(crate) booting: bool,
    /// True once a system call was entered.
    programs: bool,
    pub(crate) edges: EdgeTable,
    pub(crate) block_totals: Vec<u64>,
    /// For each block, true if it ran since the first program began; `None` before that.
    pub(crate) used: Option<Vec<bool>>,
    /// Address of `__per_cpu_offset`, and the offsets once they have been read.
    pub(crate) per_cpu: (Option<u64>, Vec<u64>),
    pub(crate) health: RecordingHealth,
    pub(crate) notes: Vec<String>,
    /// Description of how the kernel loads code, if it can.
    pub(crate) loads: Option<LoadSpec>,
    /// Number of modules and BPF programs whose symbols could not be read.
    pub(crate) unread_code: u64,
}

impl Recorder {
    /// Creates a recorder for this number of CPUs.
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
        let mut threads = ShadowStacks::new();
        let cpu_state = PerCpuState::new(0, model()?);
        let mut others = Vec::new();
        for _ in 1..cpus {
            others.push(PerCpuState::new(threads.unknown(), model()?));
        }
        let trace = match capture.functions {
            true => Some(TraceWriter::create(&output, capture.weights)?),
            false => None,
        };
        let tags = spec.tags.map(|tags| TagWriter::create(&output, tags.layout)).transpose()?;
        let user = spec.binaries.iter().map(|binary| binary.functions.len() as u32).sum();
        let functions = TracedFunctions::new(
            &spec.functions,
            user,
            spec.loads.as_ref().and_then(|loads| loads.selection.clone()),
        )?;
        if spec.stack_pointer && (functions.is_selection() || !spec.binaries.is_empty()) {
            let why =
                "the stack pointer says what is called where all kernel functions are traced, and no others";
            return Err(Failure(why.into()));
        }
        let binaries = TracedBinaries::new(&spec.binaries, functions.unknown() + 1)?;
        let data = data(spec, cpus)?;
        let mut planner = HookPlanner::new(functions, binaries, capture, cpu_state.model.is_some());
        planner.data = data.is_some();
        planner.unpacking = true;
        planner.stack_pointer = spec.stack_pointer;
        planner.directions = cpu_state.model.as_ref().is_some_and(FrontEnd::guesses_directions);
        planner.points = spec.points.iter().copied().zip(0..).collect();
        planner.tags = spec.tags;
        if let Some(loads) = &spec.loads {
            planner.loads = loads.points.iter().map(|point| point.address).zip(0..).collect();
        }
        if let Some(stream) = &spec.stream {
            if cpus > 1 {
                return Err(Failure("instructions are written down one by one of one CPU only".into()));
            }
            planner.stream = Some(StreamWriter::create(&output, stream)?);
        }
        Ok(Self {
            planner,
            blocks: BlockTable::new(),
            pages: HashMap::new(),
            progress: ProgressWriter::create(&output),
            output,
            task: spec.task,
            threads,
            regions: RegionTracker::new(
                cpu_state.model.as_ref().map(FrontEnd::second_level_events).unwrap_or_default(),
            ),
            clock: GuestClock::default(),
            clock_errors: ClockErrors::default(),
            cpu_state,
            cpus: CpuStates::new(others),
            data,
            io: spec.io.map(|io| Box::new(IoTracker::new(io))),
            trace,
            tags,
            recording: false,
            booting: true,
            programs: false,
            edges: EdgeTable::new(if capture.edges { EDGE_BITS } else { 4 }),
            block_totals: Vec::new(),
            used: None,
            per_cpu: (spec.per_cpu, Vec::new()),
            health: RecordingHealth::default(),
            notes: Vec::new(),
            loads: spec.loads.clone(),
            unread_code: 0,
        })
    }

    /// Handles the translation of a block whose first instruction lies in host page `host_page`:
    /// appends its hooks.
    pub fn translate(
        &mut self,
        insns: &[Insn],
        host_page: u64,
        cpu: &mut dyn StoppedCpu,
        hooks: &mut Vec<Hook>,
    ) {
        let linked;
        let insns = match self.runs_below_its_address(insns) {
            true => {
                let up = |insn: &Insn| Insn { address: insn.address + GuestIsa::IMAGE_OFFSET, ..*insn };
                linked = insns.iter().map(up).collect::<Vec<_>>();
                &linked
            }
            false => insns,
        };
        let (Some(first), Some(last)) = (insns.first(), insns.last()) else { return };
        let user = !GuestIsa::is_kernel(first.address);
        self.planner.unpacking &= user && !self.is_below_its_address(first);
        // The address alone would not do, since firmware also runs at low addresses.
        let function = self.planner.functions.starting(first.address);
        self.programs |= function.map(|of| self.planner.functions.kind(of)) == Some(FunctionKind::Syscall);
        let space = if user {
            let next = self.pages.len() as u64 + 1;
            *self.pages.entry(host_page).or_insert(next)
        } else {
            0
        };
        let (ending, flow) = GuestIsa::ending(last);
        let id = self.blocks.intern(BlockInfo {
            start: first.address,
            last: last.address,
            end: last.end(),
            target: match ending {
                BlockEnding::Jump { target } => target.unwrap_or(0),
                _ => 0,
            },
            offsets: insns.iter().map(|insn| (insn.address - first.address) as u16).collect(),
            flow,
            counted_faults: GuestIsa::counted_faults(last, user),
            user,
            space,
        });
        let page = if user { self.planner.binaries.identify(first.address, cpu) } else { None };
        let Some(info) = self.blocks.get(id) else { return };
        self.planner.plan(&BlockToPlan { id, info, insns, ending, page }, hooks);
    }

    /// Returns true if the first system call was seen and [`Self::programs_begin`] has not been
    /// called yet.
    pub fn awaits_programs(&self) -> bool {
        self.used.is_none() && self.programs
    }

    /// Notes that the first program runs, and clears the counts of the boot.
    pub fn programs_begin(&mut self, counts: &mut BlockCounters) {
        self.used = Some(Vec::new());
        counts.clear(self.blocks.len());
    }

    /// Marks the blocks that ran since the counts were cleared.
    pub(crate) fn note_used(&mut self, counts: &BlockCounters) {
        let Some(used) = &mut self.used else { return };
        used.resize(self.blocks.len(), false);
        for (block, _) in counts.ran(self.blocks.len()) {
            used[block] = true;
        }
    }

    /// Returns true for code of the kernel image that runs at its physical address, as the first
    /// code does. QEMU's blocks do not depend on their address, and it reuses them for the same
    /// code at kernel addresses later on. This matters for thunks, which all code shares.
    fn runs_below_its_address(&self, insns: &[Insn]) -> bool {
        let covered = |insn| self.is_below_its_address(insn);
        self.booting && self.planner.functions.has_thunks() && insns.first().is_some_and(covered)
    }

    /// Returns true if the address lies in the kernel image's place in physical memory.
    fn is_below_its_address(&self, insn: &Insn) -> bool {
        let up = insn.address.checked_add(GuestIsa::IMAGE_OFFSET);
        up.is_some_and(|address| self.planner.functions.image_covers(address))
    }

    /// Works like [`Self::emit`] for the call of a kernel function.
    #[inline(always)]
    pub(crate) fn emit_kernel_call(
        &mut self,
        board: &InlineCounters,
        rest: u64,
        function: u32,
    ) -> Result<(), Failure> {
        let event = Event::Enter { function, how: EnterKind::Call };
        if !self.is_narrow() {
            return self.emit(board, rest, event);
        }
        self.cpu_state.user = false;
        self.append(self.now(board, rest), EventWeights::NONE, event)
    }

    /// Works like [`Self::emit`] for the end of a function.
    #[inline(always)]
    pub(crate) fn emit_exit(&mut self, board: &InlineCounters, rest: u64) -> Result<(), Failure> {
        if !self.is_narrow() {
            return self.emit(board, rest, Event::Exit);
        }
        self.append(self.now(board, rest), EventWeights::NONE, Event::Exit)
    }

    /// Returns true while events are recorded without weights.
    fn is_narrow(&self) -> bool {
        self.recording && !self.planner.capture.weights
    }

    /// Appends an event that precedes the instruction with `rest` instructions to the end of its
    /// block.
    #[inline(never)]
    pub(crate) fn emit(&mut self, board: &InlineCounters, rest: u64, event: Event) -> Result<(), Failure> {
        if !self.recording {
            return Ok(());
        }
        match event {
            Event::Enter { function, .. } => self.cpu_state.user = self.planner.functions.is_user(function),
            Event::Switch { .. } => self.cpu_state.user = false,
            Event::Leave => self.cpu_state.user = true,
            _ => {}
        }
        self.settle_if_wide(board, rest);
        let weights = self.weigh();
        self.append(self.now(board, rest), weights, event)
    }

    /// Returns the number of instructions of all CPUs before the one with `rest` instructions to
    /// the end of the running block.
    #[inline]
    pub(crate) fn now(&self, board: &InlineCounters, rest: u64) -> u64 {
        (self.cpus.elsewhere + board.total()).saturating_sub(rest)
    }

    /// Appends an event that happens after `at` instructions.
    // With the kind of event known, only its part of the encoding is left.
    #[inline(always)]
    pub(crate) fn append(&mut self, at: u64, weights: EventWeights, event: Event) -> Result<(), Failure> {
        if let Some(trace) = &mut self.trace {
            if trace.push(at, weights, event) {
                return self.next_chunk(at);
            }
        }
        Ok(())
    }

    /// Closes the chunk, which is full, and begins another one.
    #[cold]
    fn next_chunk(&mut self, at: u64) -> Result<(), Failure> {
        if let Some(trace) = &mut self.trace {
            trace.close()?;
        }
        self.begin_chunk(at);
        Ok(())
    }

    #[inline]
    pub(crate) fn settle_if_wide(&mut self, board: &InlineCounters, rest: u64) {
        if self.planner.capture.weights {
            self.settle(board, rest);
        }
    }

    /// Returns branches and misses since the previous event, for a wide trace; otherwise zero.
    #[inline]
    pub(crate) fn weigh(&mut self) -> EventWeights {
        if !self.planner.capture.weights {
            return EventWeights::NONE;
        }
        let now = self.cpu_state.weights();
        let before = std::mem::replace(&mut self.cpu_state.weighed, now);
        EventWeights {
            taken_branches: now.taken_branches - before.taken_branches,
            l1i_misses: now.l1i_misses - before.l1i_misses,
            itlb_misses: now.itlb_misses - before.itlb_misses,
        }
    }

    pub(crate) fn begin_chunk(&mut self, at: u64) {
        if let Some(trace) = &mut self.trace {
            let waiting = self.cpus.waiting();
            let running = (self.cpus.current() as u32, self.cpu_state.user);
            trace.begin(at, self.clock.at(at), running, waiting, self.regions.open(), &self.threads);
        }
    }
}

/// Creates the data caches if they are requested and the model has them.
fn data(spec: &RecorderSpec, cpus: usize) -> Result<Option<Box<DataTracker>>, Failure> {
    let (Some(data), Some(text)) = (spec.data, &spec.model) else { return Ok(None) };
    let config = FrontEndConfig::parse(text)?;
    let caches = config.data.ok_or_else(|| Failure(format!("the model {} has no [data]", config.name)))?;
    Ok(Some(Box::new(DataTracker::new(&caches, config.l1i.line_bytes, data, cpus))))
}
