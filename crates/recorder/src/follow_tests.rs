//! Counts of blocks that QEMU leaves before their end, in each kind of recording.

use crate::counters::BlockCounters;
use crate::inline_counters::InlineCounters;
use crate::plan::{Callback, Hook, HookAction};
use crate::recorder::Recorder;
use kerntune_isa::{GuestIsa, Insn, Isa, Register, StoppedCpu};
use kerntune_trace::{CaptureSpec, FunctionKind, FunctionSpec, RecorderSpec, TaskOffsets, VERSION};
use std::collections::HashMap;

const USER: u64 = 0x40_1100;
/// Address at which another process maps the page of [`USER`].
const MOVED: u64 = 0x7fff_f7fd_e000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
const STACK: u64 = 0xffff_c900_0000_1000;

fn register(name: &str) -> Register {
    GuestIsa::register(name).unwrap()
}

#[derive(Default)]
struct FakeCpu {
    registers: HashMap<Register, u64>,
    memory: HashMap<u64, u64>,
    /// Mapped pages of code.
    code: Vec<u64>,
}

impl StoppedCpu for FakeCpu {
    fn register(&mut self, register: Register) -> u64 {
        self.registers.get(&register).copied().unwrap_or(0)
    }
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if into.len() == 1 {
            return self.code.contains(&(address & !0xfff));
        }
        let Some(value) = self.memory.get(&address) else { return false };
        into.copy_from_slice(&value.to_le_bytes());
        true
    }
}

struct FollowMachine {
    recorder: Recorder,
    board: InlineCounters,
    counts: BlockCounters,
    cpu: FakeCpu,
    _directory: tempfile::TempDir,
}

impl FollowMachine {
    fn new(edges: bool) -> Self {
        Self::with_model(edges, None)
    }

    fn with_model(edges: bool, model: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let spec = RecorderSpec {
            version: VERSION,
            output: directory.path().display().to_string(),
            capture: CaptureSpec { functions: !edges, edges, weights: false },
            functions: vec![FunctionSpec {
                address: KERNEL + 0x10_0000,
                size: 16,
                kind: FunctionKind::Plain,
                skip: false,
                probe: None,
                conditional: false,
            }],
            binaries: vec![],
            points: vec![],
            tags: None,
            task: TaskOffsets { pid: 0, tgid: 4, comm: 8 },
            stack_pointer: false,
            per_cpu: None,
            data: None,
            io: None,
            stream: None,
            loads: None,
            model,
        };
        let mut cpu = FakeCpu::default();
        cpu.registers.insert(register("rsp"), STACK);
        cpu.code = vec![USER & !0xfff, MOVED];
        let mut recorder = Recorder::new(&spec, 1).unwrap();
        // The kernel already runs.
        recorder.planner.unpacking = false;
        Self {
            recorder,
            board: InlineCounters::default(),
            counts: BlockCounters::new(64),
            cpu,
            _directory: directory,
        }
    }

    /// Runs the hooks of a block of this code up to instruction `done`, including that one.
    fn run(&mut self, at: u64, code: &[u8], done: usize) {
        let insns: Vec<Insn> = GuestIsa::instructions(code, at).collect();
        let mut hooks = Vec::new();
        self.recorder.translate(&insns, at >> 12, &mut self.cpu, &mut hooks);
        for Hook { at, action } in hooks {
            if at.is_none_or(|at| at <= done) {
                self.act(action);
            }
        }
    }

    fn act(&mut self, action: HookAction) {
        let Self { recorder, board, counts, cpu, .. } = self;
        match action {
            HookAction::Store { field, value } => *place(board, field) = value,
            HookAction::Add { field, value } => *place(board, field) += value,
            HookAction::Count { block } => *counts.of(block).unwrap() += 1,
            HookAction::Call { callback: Callback::Announce, number, .. } => {
                recorder.on_announce(board, number)
            }
            HookAction::Call { callback: Callback::Rewrite, number, .. } => {
                recorder.on_rewrite(board, counts, number, cpu);
            }
            HookAction::CallUnless { field, value, callback: Callback::Jump, number, .. }
                if *place(board, field) != value =>
            {
                recorder.on_jump(board, number);
            }
            _ => {}
        }
    }

    /// Raises an exception that points at `address`.
    fn exception(&mut self, address: u64, code: Option<u64>) {
        let words = code.into_iter().chain([address, 0x33, 0x202, 0x7ffe_0000, 0x2b]);
        self.cpu.memory = (STACK..).step_by(8).zip(words).collect();
        let Self { recorder, board, counts, cpu, .. } = self;
        recorder.on_interrupt(board, counts, 0, true, cpu);
    }
}

fn place(board: &mut InlineCounters, offset: usize) -> &mut u64 {
    match offset {
        o if o == std::mem::offset_of!(InlineCounters, kernel) => &mut board.kernel,
        o if o == std::mem::offset_of!(InlineCounters, user) => &mut board.user,
        o if o == std::mem::offset_of!(InlineCounters, block) => &mut board.block,
        o if o == std::mem::offset_of!(InlineCounters, next) => &mut board.next,
        _ => &mut board.call,
    }
}

/// Returns the instructions counted after `code` at [`USER`] ran up to an exception at `offset`.
fn counted(code: &[u8], offset: u64, error: Option<u64>) -> [u64; 2] {
    [false, true].map(|edges| {
        let mut machine = FollowMachine::new(edges);
        machine.run(USER, code, 99);
        machine.exception(USER + offset, error);
        machine.board.user
    })
}

#[test]
fn an_instruction_that_is_refused_when_it_is_translated_counts() {
    assert_eq!(counted(&[0x90, 0x90, 0x0f, 0x0b], 2, None), [3; 2], "ud2");
    assert_eq!(counted(&[0x90, 0x90, 0xfa], 2, Some(0)), [3; 2], "cli");
    assert_eq!(counted(&[0x90, 0x0f, 0x30], 1, Some(0)), [2; 2], "wrmsr");
    assert_eq!(counted(&[0x90, 0xcd, 0x80], 1, Some(0x402)), [2; 2], "int 0x80");
}

#[test]
fn an_instruction_that_faults_does_not_count() {
    assert_eq!(counted(&[0x90, 0x90, 0xf7, 0xf1], 2, None), [2; 2], "div");
    assert_eq!(counted(&[0x90, 0xf7, 0xf1, 0x90], 1, None), [1; 2], "div in the middle");
    assert_eq!(counted(&[0x90, 0x8b, 0x00], 1, Some(6)), [1; 2], "mov");
    assert_eq!(counted(&[0x90, 0xe4, 0x80], 1, Some(0)), [1; 2], "in");
    assert_eq!(counted(&[0x90, 0xf3, 0xaa], 1, Some(6)), [1; 2], "rep stosb");
    assert_eq!(counted(&[0x90, 0xcc], 2, None), [2; 2], "int3 points behind itself");
}

#[test]
fn a_block_is_known_where_another_process_has_its_page() {
    for edges in [false, true] {
        let mut machine = FollowMachine::new(edges);
        // Translated for one process at `USER`, executed by another at `MOVED`.
        machine.run(USER, &[0x90, 0x90, 0xc6, 0x07, 0x01, 0x90, 0x90, 0xc3], 99);
        machine.exception(MOVED | 0x102, Some(6));
        assert_eq!(machine.board.user, 2);
    }
}

#[test]
fn a_fetch_fault_is_in_no_block() {
    for edges in [false, true] {
        let mut machine = FollowMachine::new(edges);
        // `nop; nop; jmp rdi` to the same offset of a page that is not present.
        machine.run(USER, &[0x90, 0x90, 0xff, 0xe7], 99);
        machine.exception(0x5000_0101, Some(0x14));
        assert_eq!(machine.board.user, 3);
    }
}

#[test]
fn a_block_that_writes_to_itself_goes_on_with_one_instruction() {
    for (edges, base) in [(false, USER), (true, USER), (false, KERNEL), (true, KERNEL)] {
        // `mov byte [rdi], 0x90` at 2, followed by seven more instructions.
        let code = [0x90, 0x90, 0xc6, 0x07, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3];
        let mut machine = FollowMachine::new(edges);
        let total = |machine: &FollowMachine| machine.board.user + machine.board.kernel;
        machine.cpu.registers.insert(register("rdi"), base + 7);
        machine.run(base, &code, 2);
        assert_eq!(total(&machine), 10);
        machine.run(base + 2, &code[2..5], 99);
        assert_eq!(total(&machine), 3, "edges {edges}, {base:#x}");
        assert_eq!(machine.recorder.cpu_state.taken, [0, 0]);
        machine.run(base + 5, &code[5..], 99);
        assert_eq!(total(&machine), 10);
        assert_eq!(machine.recorder.cpu_state.taken, [0, 0]);
    }
}

#[test]
fn one_instruction_that_writes_elsewhere_is_a_block_like_others() {
    let code = [0x90, 0x90, 0xc6, 0x07, 0x90, 0x90, 0x75, 0xfa];
    let mut machine = FollowMachine::new(false);
    machine.cpu.registers.insert(register("rdi"), USER + 0x2000);
    machine.run(USER, &code, 99);
    // The jump back to the store; the timer is due after one instruction.
    machine.run(USER + 2, &code[2..5], 99);
    assert_eq!(machine.board.user, 5 + 1);
}

/// Firmware and decompressor run at low addresses, as user programs do.
#[test]
fn models_begin_with_the_kernel() {
    let config = kerntune_layout::FrontEndConfig::named("generic").unwrap();
    for kernel in [KERNEL, KERNEL + 0x10_0000 - GuestIsa::IMAGE_OFFSET] {
        let mut machine = FollowMachine::with_model(true, Some(config.to_toml()));
        machine.recorder.planner.unpacking = true;
        let jumps = |machine: &mut FollowMachine| {
            machine.run(USER, &[0xeb, 0xfe], 99);
            machine.run(USER, &[0xeb, 0xfe], 99);
            machine.recorder.cpu_state.taken[1]
        };
        assert_eq!((jumps(&mut machine), machine.board.user), (0, 2));
        machine.run(kernel, &[0xc3], 99);
        assert!(jumps(&mut machine) > 0);
    }
}

#[test]
fn directions_are_told_of_whether_a_branch_is_taken_or_not() {
    let config = kerntune_layout::FrontEndConfig::named("pa-risc-720+static").unwrap();
    for (base, user) in [(USER, 1), (KERNEL, 0)] {
        let mut machine = FollowMachine::with_model(true, Some(config.to_toml()));
        let wrong = |machine: &FollowMachine| {
            let counts = machine.recorder.cpu_state.model.as_ref().unwrap().second_level_counts().unwrap();
            [counts.kernel, counts.user][user].direction_mispredictions
        };
        // `dec ecx; jnz base`, correctly predicted as taken, and a return.
        let (head, tail) = ([0xff, 0xc9, 0x75, 0xfc], [0xc3]);
        for _ in 0..3 {
            machine.run(base, &head, 99);
        }
        assert_eq!((wrong(&machine), machine.recorder.cpu_state.taken[user]), (0, 2));
        machine.run(base + 4, &tail, 99);
        assert_eq!((wrong(&machine), machine.recorder.cpu_state.taken[user]), (1, 2));
        // `jz` forward, not taken, then taken.
        machine.run(base + 0x20, &[0x74, 0x02], 99);
        machine.run(base + 0x22, &[0xeb, 0xfc], 99);
        assert_eq!((wrong(&machine), machine.recorder.cpu_state.taken[user]), (1, 3));
        machine.run(base + 0x20, &[0x74, 0x02], 99);
        machine.run(base + 0x24, &tail, 99);
        assert_eq!((wrong(&machine), machine.recorder.cpu_state.taken[user]), (2, 5));
    }
}
