//! Simulated machine that runs real x86 code of random kernels and programs under the recorder, and
//! checks the recorder's stacks against a simple model.
//!
//! In the model, every call begins a level, which its return ends. A level holds the functions that
//! jumped to each other in it. Untraced code is in no level. A jump to it empties the level, since
//! the return that ends it will not be seen.

mod program;

use crate::drive::{HookRunner, HookedBlock};
use kerntune_isa::{BlockEnding, BlockFlow, GuestIsa, Insn, Isa, Register, StoppedCpu};
use kerntune_trace::{
    page_hash, BinarySpec, CaptureSpec, ChunkHeader, ChunkState, EnterKind, Event, EventDecoder as Events,
    FunctionKind, FunctionSpec, PageSpec, RecorderSpec, TaskOffsets, CHUNK_HEADER_BYTES, TRACE_HEADER_BYTES,
    VERSION,
};
use program::{
    assemble, bodies, FunctionBody, FunctionEnd, ProgramStep, ThunkIndices, DEVICE, RETPOLINE, TABLE,
    USER_TABLE,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const USER: u64 = 0x40_1000;
/// Distance between functions, in bytes.
const STRIDE: u64 = 256;
const USER_CS: u64 = 0x33;
const KERNEL_CS: u64 = 0x10;

#[derive(Default)]
struct SimulatedCpu {
    rip: u64,
    rsp: u64,
    rax: u64,
    rcx: u64,
    user_rsp: u64,
    memory: HashMap<u64, u64>,
    user_page: Vec<u8>,
}

impl StoppedCpu for SimulatedCpu {
    fn register(&mut self, register: Register) -> u64 {
        match GuestIsa::REGISTERS[register.index()] {
            "rax" => self.rax,
            "rcx" => self.rcx,
            "rsp" => self.rsp,
            _ => 0,
        }
    }
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if address == USER & !4095 && into.len() == 4096 {
            into.copy_from_slice(&self.user_page);
            return true;
        }
        for (at, word) in into.chunks_mut(8).enumerate() {
            let Some(value) = self.memory.get(&(address + at as u64 * 8)) else { return false };
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
        true
    }
}

/// Context of user code, a system call or an interrupt.
#[derive(Default)]
struct ExecutionContext {
    levels: Vec<Vec<u32>>,
    /// Function about to begin, and whether it was called. An interrupt may come first.
    pending: Option<(u64, bool)>,
    /// Value of `rax` saved by an interrupt.
    rax: u64,
}

struct SimulatedMachine {
    code: BTreeMap<u64, Vec<u8>>,
    driver: HookRunner,
    cpu: SimulatedCpu,
    blocks: HashMap<u64, (Vec<Insn>, HookedBlock)>,
    kernel: Vec<FunctionBody>,
    user: Vec<FunctionBody>,
    contexts: Vec<ExecutionContext>,
    /// Number of entries of each traced function.
    entries: BTreeMap<u32, u64>,
    random: u64,
    steps: u32,
    /// Number of executed instructions.
    executed: u64,
    /// Last two functions of a kernel with retpolines and return thunks.
    thunks: Option<ThunkIndices>,
}

/// First functions of the kernel: the entries of system calls and of interrupts.
const SYSCALL: u32 = 0;
const INTERRUPT: u32 = 1;

impl SimulatedMachine {
    fn new(
        kernel: &[FunctionBody],
        user: &[FunctionBody],
        directory: &std::path::Path,
        seed: u64,
        cpus: usize,
    ) -> Self {
        Self::with_thunks(kernel, user, directory, seed, cpus, None)
    }

    fn with_thunks(
        kernel: &[FunctionBody],
        user: &[FunctionBody],
        directory: &std::path::Path,
        seed: u64,
        cpus: usize,
        thunks: Option<ThunkIndices>,
    ) -> Self {
        let mut code = BTreeMap::new();
        for (at, body) in kernel.iter().enumerate() {
            let at = KERNEL + at as u64 * STRIDE;
            code.insert(at, assemble(body, KERNEL, at, thunks));
        }
        // `call 2; sysretq` and `call 3; iretq`
        for (at, end) in [(SYSCALL, &[0x48, 0x0f, 0x07][..]), (INTERRUPT, &[0x48, 0xcf])] {
            let place = KERNEL + u64::from(at) * STRIDE;
            let call = FunctionBody {
                ops: vec![ProgramStep::Call(u64::from(at) + 2)],
                end: FunctionEnd::Return,
                traced: true,
            };
            let mut bytes = assemble(&call, KERNEL, place, None);
            bytes.pop();
            bytes.extend_from_slice(end);
            code.insert(place, bytes);
        }
        if let Some(ThunkIndices { indirect, returns }) = thunks {
            code.insert(KERNEL + indirect * STRIDE, RETPOLINE.to_vec());
            code.insert(KERNEL + returns * STRIDE, vec![0xc3]);
        }
        let mut page = vec![0; 4096];
        for (at, body) in user.iter().enumerate() {
            let place = USER + at as u64 * STRIDE;
            let bytes = assemble(body, USER, place, None);
            page[at * STRIDE as usize..][..bytes.len()].copy_from_slice(&bytes);
            code.insert(place, bytes);
        }
        let functions = (0..kernel.len() as u64).map(|at| FunctionSpec {
            address: KERNEL + at * STRIDE,
            size: STRIDE,
            kind: match at {
                0 => FunctionKind::Syscall,
                1 => FunctionKind::Interrupt,
                _ if thunks.is_some_and(|thunks| thunks.indirect == at) => FunctionKind::Thunk,
                _ if thunks.is_some_and(|thunks| thunks.returns == at) => FunctionKind::ReturnThunk,
                _ => FunctionKind::Plain,
            },
            skip: !kernel[at as usize].traced,
            probe: None,
            conditional: kernel.iter().any(|body| matches!(body.end, FunctionEnd::JumpIf(to) if to == at)),
        });
        // In the file the code has another position than in memory.
        let user_functions = (0..user.len() as u64).filter(|&at| user[at as usize].traced);
        let hash = page_hash(page.as_slice().try_into().unwrap());
        let binary = BinarySpec {
            path: "program".into(),
            pages: vec![PageSpec { offset: 0x7000, hash }],
            functions: user_functions
                .map(|at| FunctionSpec {
                    address: 0x7000 + at * STRIDE,
                    size: STRIDE,
                    kind: FunctionKind::Plain,
                    skip: false,
                    probe: None,
                    conditional: false,
                })
                .collect(),
        };
        let spec = RecorderSpec {
            version: VERSION,
            output: directory.display().to_string(),
            capture: CaptureSpec { functions: true, edges: seed & 1 == 0, weights: false },
            functions: functions.collect(),
            binaries: if thunks.is_some() { vec![] } else { vec![binary] },
            points: vec![],
            tags: None,
            task: TaskOffsets { pid: 0, tgid: 4, comm: 8 },
            stack_pointer: thunks.is_some(),
            per_cpu: None,
            data: None,
            io: None,
            stream: None,
            loads: None,
            model: None,
        };
        let mut driver = HookRunner::with_cpus(&spec, cpus, 1 << 16).unwrap();
        driver.recorder.recording = true;
        driver.recorder.begin_chunk(0);
        let tables = [(TABLE, KERNEL, kernel.len()), (USER_TABLE, USER, user.len())];
        let words =
            |(table, base, count)| (0..count as u64).map(move |at| (table + at * 8, base + at * STRIDE));
        let memory = tables.into_iter().flat_map(words).collect();
        let cpu =
            SimulatedCpu { user_page: page, memory, rsp: 0x7fff_0000, rip: USER, ..SimulatedCpu::default() };
        Self {
            code,
            driver,
            cpu,
            blocks: HashMap::new(),
            kernel: kernel.to_vec(),
            user: user.to_vec(),
            contexts: vec![ExecutionContext::default()],
            entries: BTreeMap::new(),
            random: seed | 1,
            steps: 0,
            executed: 0,
            thunks,
        }
    }

    /// Returns whether an address lies in the thunk for indirect calls, and whether in the one for
    /// returns.
    fn in_thunk(&self, address: u64) -> (bool, bool) {
        let within =
            |function: u64| (KERNEL + function * STRIDE..KERNEL + (function + 1) * STRIDE).contains(&address);
        self.thunks.map_or((false, false), |thunks| (within(thunks.indirect), within(thunks.returns)))
    }

    /// Returns the number of the traced function that begins at an address.
    fn traced(&self, address: u64) -> Option<u32> {
        if GuestIsa::is_kernel(address) {
            let at = (address - KERNEL) / STRIDE;
            return self.kernel[at as usize].traced.then_some(at as u32);
        }
        let at = ((address - USER) / STRIDE) as usize;
        let before = self.user[..at].iter().filter(|body| body.traced).count();
        self.user[at].traced.then(|| (self.kernel.len() + 1 + before) as u32)
    }

    fn insns(&self, address: u64) -> Vec<Insn> {
        let (&start, bytes) = self.code.range(..=address).next_back().unwrap();
        let mut insns = Vec::new();
        for insn in GuestIsa::instructions(&bytes[(address - start) as usize..], address) {
            insns.push(insn);
            if GuestIsa::ending(&insn).1 != BlockFlow::Straight {
                break;
            }
        }
        insns
    }

    fn push(&mut self, value: u64) {
        self.cpu.rsp -= 8;
        self.cpu.memory.insert(self.cpu.rsp, value);
    }

    fn pop(&mut self) -> u64 {
        let value = self.cpu.memory.get(&self.cpu.rsp).copied().unwrap_or(0);
        self.cpu.rsp += 8;
        value
    }

    /// Updates the model: a function is about to begin, by a call or by a jump.
    fn expect_entry(&mut self, address: u64, call: bool) {
        self.contexts.last_mut().unwrap().pending = Some((address, call));
    }

    /// Updates the model: a function is about to begin by a jump. If kernel code certainly jumps to
    /// untraced code, its level is empty from now on.
    fn expect_jump(&mut self, address: u64, conditional: bool) {
        if GuestIsa::is_kernel(address) && !conditional && self.traced(address).is_none() {
            self.contexts.last_mut().unwrap().levels.last_mut().unwrap().clear();
        } else {
            self.expect_entry(address, false);
        }
    }

    /// Updates the model: the pending function begins.
    fn begin(&mut self) {
        let Some((address, call)) = self.contexts.last_mut().unwrap().pending.take() else { return };
        let traced = self.traced(address);
        let levels = &mut self.contexts.last_mut().unwrap().levels;
        if call {
            levels.push(Vec::new());
        }
        let level = levels.last_mut().unwrap();
        match traced {
            Some(function) => {
                level.push(function);
                *self.entries.entry(function).or_default() += 1;
            }
            None => level.clear(),
        }
    }

    fn enter_kernel(&mut self, function: u32) {
        self.cpu.rip = KERNEL + u64::from(function) * STRIDE;
        self.contexts.push(ExecutionContext::default());
        self.expect_entry(self.cpu.rip, true);
    }

    fn interrupt(&mut self) {
        let (rip, rsp) = (self.cpu.rip, self.cpu.rsp);
        let user = !GuestIsa::is_kernel(rip);
        if user {
            self.cpu.user_rsp = rsp;
            self.cpu.rsp = KERNEL - 0x1000;
        }
        for word in [0x2b, rsp, 0x202, if user { USER_CS } else { KERNEL_CS }, rip] {
            self.push(word);
        }
        let rax = self.cpu.rax;
        self.enter_kernel(INTERRUPT);
        self.contexts.last_mut().unwrap().rax = rax;
    }

    /// Prepares the begin of the program, as if it were called.
    fn start(&mut self) {
        self.push(0);
        self.driver.board.call = 1;
        self.expect_entry(USER, true);
    }

    /// Runs one block. Returns false when the program's first function has returned.
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if self.random >> 60 == 0 && self.contexts.len() < 4 {
            self.interrupt();
        }
        self.begin();
        let start = self.cpu.rip;
        if !self.blocks.contains_key(&start) {
            let insns = self.insns(start);
            let block = self.driver.translate(&insns, start >> 12, &mut self.cpu);
            self.blocks.insert(start, (insns, block));
        }
        let (insns, block) = self.blocks[&start].clone();
        self.driver.begin(&block, &mut self.cpu).unwrap();
        for (at, insn) in insns.iter().enumerate() {
            self.driver.before(&block, at, &mut self.cpu).unwrap();
            // Hooks of the last instruction see its effect before it runs.
            if at == 0 && insns.len() > 1 {
                self.check();
            }
            self.execute(insn);
            if insn.bytes[..2] == DEVICE {
                self.driver.device(insn, &mut self.cpu);
                break;
            }
        }
        assert_eq!(self.driver.board.total(), self.executed);
        self.cpu.rip != 0
    }

    fn execute(&mut self, insn: &Insn) {
        self.executed += 1;
        self.cpu.rip = insn.end();
        if insn.bytes[..2] == [0x48, 0xb8] {
            self.cpu.rax = u64::from_le_bytes(insn.bytes[2..10].try_into().unwrap());
        }
        if insn.bytes[..4] == RETPOLINE[6..10] {
            self.cpu.memory.insert(self.cpu.rsp, self.cpu.rax);
        }
        if insn.bytes[..2] == [0x0f, 0x05] {
            self.cpu.rcx = insn.end();
            self.cpu.user_rsp = self.cpu.rsp;
            self.cpu.rsp = KERNEL - 0x1000;
            self.enter_kernel(SYSCALL);
            return;
        }
        match GuestIsa::ending(insn).0 {
            BlockEnding::Call { target } => {
                self.push(insn.end());
                self.cpu.rip = target.unwrap_or(self.cpu.rax);
                if !self.in_thunk(insn.address).0 {
                    self.expect_entry(self.cpu.rip, true);
                }
            }
            BlockEnding::Jump { target } => {
                let conditional = insn.bytes[0] == 0x0f;
                if conditional && self.random >> 59 & 1 == 0 {
                    return;
                }
                self.cpu.rip = match target {
                    Some(target) => target,
                    None if insn.bytes[1] == 0x24 => {
                        let table = if GuestIsa::is_kernel(insn.address) { TABLE } else { USER_TABLE };
                        self.cpu.memory[&(table + self.cpu.rax * 8)]
                    }
                    None => self.cpu.rax,
                };
                if !self.in_thunk(self.cpu.rip).1 {
                    self.expect_jump(self.cpu.rip, conditional);
                }
            }
            BlockEnding::Return if self.in_thunk(insn.address).0 => {
                self.cpu.rip = self.pop();
                self.expect_jump(self.cpu.rip, false);
            }
            BlockEnding::Return => {
                self.cpu.rip = self.pop();
                self.contexts.last_mut().unwrap().levels.pop();
            }
            BlockEnding::SystemReturn => {
                (self.cpu.rip, self.cpu.rsp) = (self.cpu.rcx, self.cpu.user_rsp);
                self.contexts.pop();
            }
            BlockEnding::InterruptReturn => {
                self.cpu.rip = self.pop();
                let words = [self.pop(), self.pop(), self.pop(), self.pop()];
                self.cpu.rsp = words[2];
                self.cpu.rax = self.contexts.pop().unwrap().rax;
            }
            _ => {}
        }
    }

    /// Compares the recorder's stack with the model while no jump is pending.
    fn check(&mut self) {
        let expected: Vec<u32> =
            self.contexts.iter().flat_map(|context| &context.levels).flatten().copied().collect();
        let frames = &self.driver.recorder.threads.running().frames;
        let found: Vec<u32> = frames.iter().map(|&(function, _)| function).collect();
        assert_eq!(found, expected, "at {:#x}, step {}", self.cpu.rip, self.steps);
    }
}

/// Reads the trace: returns the entries by function and the final stack.
fn read(directory: &std::path::Path, kernel_functions: u32) -> (BTreeMap<u32, u64>, Vec<(u32, EnterKind)>) {
    let bytes = std::fs::read(directory.join(kerntune_trace::files::TRACE)).unwrap();
    let header = &bytes[TRACE_HEADER_BYTES..];
    if header.is_empty() {
        return Default::default(); // nothing that is traced was entered
    }
    let chunk = ChunkHeader::parse(header).unwrap();
    let body = &header[CHUNK_HEADER_BYTES..][..chunk.compressed as usize];
    let raw = zstd::bulk::decompress(body, 1 << 24).unwrap();
    let (state, payload) = raw.split_at(chunk.state as usize);
    assert!(ChunkState::parse(state).unwrap().stacks[0].frames.is_empty());
    let (mut entries, mut stack) = (BTreeMap::new(), Vec::<(u32, EnterKind)>::new());
    let mut events = Events::new(payload);
    while let Some((_, event)) = events.next().unwrap() {
        match event {
            Event::Enter { function, how } => {
                stack.push((function, how));
                *entries.entry(function).or_default() += 1;
            }
            Event::Exit => while stack.pop().unwrap().1 == EnterKind::Jump && !stack.is_empty() {},
            Event::Unwind { frames } => stack.truncate(stack.len() - frames as usize),
            Event::Resume => {
                while !matches!(stack.pop().unwrap().1, EnterKind::Interrupt | EnterKind::Exception) {}
            }
            Event::Leave => stack.retain(|&(function, _)| function > kernel_functions),
            other => panic!("{other:?}"),
        }
    }
    (entries, stack)
}

fn run(
    kernel: &[FunctionBody],
    user: &[FunctionBody],
    seed: u64,
) -> Result<BTreeMap<u32, u64>, TestCaseError> {
    run_with(kernel, user, seed, None)
}

/// Runs a program to its end. A few programs, in which functions call three others over and over,
/// take too long and are rejected.
fn run_with(
    kernel: &[FunctionBody],
    user: &[FunctionBody],
    seed: u64,
    thunks: Option<ThunkIndices>,
) -> Result<BTreeMap<u32, u64>, TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = SimulatedMachine::with_thunks(kernel, user, directory.path(), seed, 1, thunks);
    machine.start();
    while machine.step() {
        if machine.steps >= 200_000 {
            return Err(TestCaseError::reject("the program is too long"));
        }
    }
    let health = machine.driver.recorder.health;
    assert_eq!(health.foreign_returns + health.unmatched_returns + health.unwound_frames, 0, "{health:?}");
    assert_eq!(health.headless_returns + health.lost_jumps, 0);
    let SimulatedMachine { mut driver, entries, .. } = machine;
    assert!(driver.recorder.threads.running().frames.is_empty());
    driver.finish().unwrap();
    let (found, stack) = read(directory.path(), kernel.len() as u32);
    assert_eq!((&found, stack), (&entries, vec![]));
    Ok(entries)
}

/// State of a CPU that does not execute.
#[derive(Default)]
struct IdleCpu {
    cpu: SimulatedCpu,
    contexts: Vec<ExecutionContext>,
    executed: u64,
}

impl SimulatedMachine {
    /// Swaps the state of the executing CPU with another one.
    fn exchange(&mut self, own: &mut IdleCpu) {
        std::mem::swap(&mut self.cpu, &mut own.cpu);
        std::mem::swap(&mut self.contexts, &mut own.contexts);
        std::mem::swap(&mut self.executed, &mut own.executed);
    }
}

/// Runs the program on each CPU, in turns of random length.
fn run_several(
    kernel: &[FunctionBody],
    user: &[FunctionBody],
    seed: u64,
    cpus: usize,
) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = SimulatedMachine::new(kernel, user, directory.path(), seed, cpus);
    let own = |machine: &SimulatedMachine| IdleCpu {
        cpu: SimulatedCpu {
            user_page: machine.cpu.user_page.clone(),
            memory: machine.cpu.memory.clone(),
            rsp: machine.cpu.rsp,
            rip: USER,
            ..SimulatedCpu::default()
        },
        contexts: vec![ExecutionContext::default()],
        executed: 0,
    };
    let mut parked: Vec<IdleCpu> = (0..cpus).map(|_| own(&machine)).collect();
    let (mut current, mut halted, mut halts) = (0, vec![false; cpus], vec![0; cpus]);
    let mut turn = |machine: &mut SimulatedMachine, halted: &[bool], cpu: usize| {
        halts[current] += u64::from(cpu != current && halted[current]);
        machine.exchange(&mut parked[current]);
        machine.exchange(&mut parked[cpu]);
        current = cpu;
        machine.driver.turn(cpu).unwrap();
    };
    for cpu in 0..cpus {
        turn(&mut machine, &halted, cpu);
        machine.start();
    }
    let mut alive: Vec<usize> = (0..cpus).collect();
    let mut random = seed;
    while !alive.is_empty() {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (random >> 33) as usize % alive.len();
        turn(&mut machine, &halted, alive[at]);
        for _ in 0..random >> 61 {
            if !machine.step() {
                let cpu = alive.remove(at);
                // All CPUs except the last halt when their program has ended.
                if !alive.is_empty() {
                    let HookRunner { recorder, board, .. } = &mut machine.driver;
                    recorder.on_halt(board, 0);
                    halted[cpu] = true;
                }
                break;
            }
        }
    }
    turn(&mut machine, &halted, 0);
    turn(&mut machine, &halted, cpus - 1);
    let SimulatedMachine { mut driver, entries, executed, .. } = machine;
    let mut expected: Vec<u64> = parked.iter().map(|own| own.executed).collect();
    expected[cpus - 1] = executed;
    driver.finish().unwrap();
    let trace = read_several(directory.path(), kernel.len() as u32, cpus);
    prop_assert_eq!(&trace.entries, &entries);
    prop_assert!(trace.stacks.iter().all(Vec::is_empty), "{:?}", trace.stacks);
    prop_assert_eq!(&trace.halts, &halts);
    for (cpu, (found, expected)) in trace.executed.iter().zip(expected).enumerate() {
        // Instructions after a CPU's last event are not in the trace.
        prop_assert!(*found <= expected && expected - found < 400, "CPU {}: {} of {}", cpu, found, expected);
    }
    Ok(())
}

/// Contents of a trace of several CPUs.
struct TraceSummary {
    entries: BTreeMap<u32, u64>,
    /// Final stack of each CPU.
    stacks: Vec<Vec<(u32, EnterKind)>>,
    executed: Vec<u64>,
    /// Number of turns that ended with the CPU halted.
    halts: Vec<u64>,
}

fn read_several(directory: &std::path::Path, kernel_functions: u32, cpus: usize) -> TraceSummary {
    let (zeros, stacks) = (vec![0; cpus], vec![Vec::new(); cpus]);
    let mut seen = TraceSummary { entries: BTreeMap::new(), stacks, executed: zeros.clone(), halts: zeros };
    let bytes = std::fs::read(directory.join(kerntune_trace::files::TRACE)).unwrap();
    let header = &bytes[TRACE_HEADER_BYTES..];
    if header.is_empty() {
        return seen;
    }
    let chunk = ChunkHeader::parse(header).unwrap();
    let raw =
        zstd::bulk::decompress(&header[CHUNK_HEADER_BYTES..][..chunk.compressed as usize], 1 << 24).unwrap();
    let (state, payload) = raw.split_at(chunk.state as usize);
    assert_eq!(ChunkState::parse(state).unwrap().waiting.len(), cpus - 1);
    let mut cpu = chunk.vcpu as usize;
    let mut events = Events::new(payload);
    while let Some((instructions, event)) = events.next().unwrap() {
        seen.executed[cpu] += instructions;
        let stack = &mut seen.stacks[cpu];
        match event {
            Event::Cpu { cpu: next, halts } => {
                seen.halts[cpu] += u64::from(halts);
                cpu = next as usize;
            }
            Event::Enter { function, how } => {
                stack.push((function, how));
                *seen.entries.entry(function).or_default() += 1;
            }
            Event::Exit => while stack.pop().unwrap().1 == EnterKind::Jump && !stack.is_empty() {},
            Event::Unwind { frames } => stack.truncate(stack.len() - frames as usize),
            Event::Resume => {
                while !matches!(stack.pop().unwrap().1, EnterKind::Interrupt | EnterKind::Exception) {}
            }
            Event::Leave => stack.retain(|&(function, _)| function > kernel_functions),
            other => panic!("{other:?}"),
        }
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn several_cpus_do_not_get_into_each_others_way(
        mut kernel in bodies(8, 2, false),
        user in bodies(6, 0, true),
        seed in any::<u64>(),
        cpus in 2usize..5,
    ) {
        kernel[0].traced = true;
        kernel[1].traced = true;
        run_several(&kernel, &user, seed, cpus)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn stacks_are_right_whatever_is_traced(
        mut kernel in bodies(8, 2, false),
        mut user in bodies(6, 0, true),
        seed in any::<u64>(),
    ) {
        kernel[0].traced = true;
        kernel[1].traced = true;
        let entries = run(&kernel, &user, seed)?;
        // Traced functions are entered as often as if everything were traced.
        let number = |user: &[FunctionBody], at: usize| {
            (kernel.len() + 1 + user[..at].iter().filter(|body| body.traced).count()) as u32
        };
        let selected: Vec<bool> = user.iter().map(|body| body.traced).collect();
        let chosen: Vec<u32> = (0..user.len()).filter(|&at| selected[at]).map(|at| number(&user, at)).collect();
        let mut all = kernel.clone();
        all.iter_mut().for_each(|body| body.traced = true);
        user.iter_mut().for_each(|body| body.traced = true);
        let complete = run(&all, &user, seed)?;
        for (at, body) in kernel.iter().enumerate().filter(|(_, body)| body.traced) {
            prop_assert_eq!(entries.get(&(at as u32)), complete.get(&(at as u32)), "{:?}", body);
        }
        let places: Vec<usize> = (0..user.len()).filter(|&at| selected[at]).collect();
        for (at, function) in places.into_iter().zip(chosen) {
            prop_assert_eq!(entries.get(&function), complete.get(&number(&user, at)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Checks that a kernel with retpolines and return thunks has the same entries as one without.
    #[test]
    fn stacks_are_right_by_the_stack_pointer(
        mut kernel in bodies(8, 2, false),
        mut user in bodies(6, 0, true),
        seed in any::<u64>(),
    ) {
        kernel.iter_mut().for_each(|body| body.traced = true);
        user.iter_mut().for_each(|body| body.traced = false);
        let thunk = FunctionBody { ops: vec![], end: FunctionEnd::Return, traced: true };
        let count = kernel.len() as u64;
        kernel.extend([thunk.clone(), thunk]);
        let thunks = ThunkIndices { indirect: count, returns: count + 1 };
        let entries = run_with(&kernel, &user, seed, Some(thunks))?;
        prop_assert!(entries.keys().all(|&function| u64::from(function) <= count), "{:?}", entries);
    }
}
