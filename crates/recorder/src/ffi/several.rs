//! Turns of several virtual CPUs.
//!
//! QEMU executes them in turn on one thread. With only one thread, it assumes that the CPU that
//! translates a block is the only one to run it (`gen_cpu_index` of accel/tcg/plugin-gen.c, 10.0 and
//! later). Scoreboards and the CPU number passed to callbacks are then those of the CPU that
//! translated the block. So generated code updates one set of counters for all CPUs, which is
//! exchanged at each turn. It calls [`kerntune_on_turn`] at the beginning of each block; only the
//! first block of a turn leaves those few instructions. The CPU is identified by the address of its
//! state, which generated code keeps in a host register.
//!
//! For QEMU, the counters are a place relative to the translating CPU's part of a scoreboard
//! ([`InlineSlot`]). Which CPU translates is known by the address in `current_cpu`, which QEMU exports
//! for its loadable modules, and whose number a block's callbacks pass. Until a CPU's number is known,
//! or if nothing is exported, callbacks do in blocks what generated code cannot ([`HookRunner`]).
//!
//! [`HookRunner`]: crate::drive::HookRunner

use super::api::{PluginApi, VcpuCallback};
use super::{halt, level, with, QemuCpu, RecorderPlugin};
use crate::drive::HookedBlock;
use crate::Failure;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// First QEMU whose generated code contains the number of the translating CPU.
const CONSTANT_NUMBERS: (u32, u32) = (10, 0);
/// Argument of [`on_turn`] in a block whose translating CPU has an unknown number.
const UNKNOWN: usize = usize::MAX;

/// Place in a scoreboard of one byte for each CPU, from which generated code finds the counters.
///
/// QEMU adds the field's offset and the CPU's number times the size of an element. It multiplies in
/// place, and so would change a constant of the block to any other size's multiple.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlineSlot {
    /// Number of the CPU.
    number: c_uint,
    /// Address of the CPU's byte.
    pub(super) address: usize,
}

impl InlineSlot {
    /// Returns the place of a CPU, which must exist.
    pub(super) fn of(api: &PluginApi, score: *mut c_void, number: c_uint) -> Self {
        // SAFETY: a plain call of the API; the scoreboard is ours.
        let address = unsafe { (api.qemu_plugin_scoreboard_find)(score, number) };
        Self { number, address: address as usize }
    }
}

/// CPUs that take turns.
pub(super) struct CpuTurns {
    /// Addresses of the CPUs' states in the order in which the CPUs began: the boot CPU first, then
    /// the others as the kernel starts them, which is by number.
    states: Vec<usize>,
    cpus: usize,
    /// Places of CPUs by their address in `current_cpu`.
    slots: Vec<(usize, InlineSlot)>,
    /// True if generated code contains the number of the translating CPU.
    constant_numbers: bool,
    /// Blocks whose hooks callbacks execute, by callback number, with the address of the translating
    /// CPU.
    blocks: Vec<(usize, HookedBlock)>,
}

impl CpuTurns {
    pub(super) fn new(cpus: usize) -> Self {
        let version = level::version();
        Self {
            states: Vec::new(),
            cpus,
            slots: Vec::new(),
            constant_numbers: version.is_none_or(|version| version >= CONSTANT_NUMBERS),
            blocks: Vec::new(),
        }
    }

    /// Returns the place of the translating CPU, if it is known.
    pub(super) fn slot(&self) -> Option<InlineSlot> {
        let translating = halt::current_cpu()?;
        self.slots.iter().find(|(cpu, _)| *cpu == translating).map(|(_, slot)| *slot)
    }

    /// Returns the number of the CPU with this state. A new state is that of the next CPU.
    fn number(&mut self, state: usize) -> Option<usize> {
        self.states.iter().position(|known| *known == state).or_else(|| {
            (self.states.len() < self.cpus).then(|| {
                self.states.push(state);
                self.states.len() - 1
            })
        })
    }

    /// Adds a block whose hooks callbacks execute, and returns its callback number.
    pub(super) fn add(&mut self, block: HookedBlock) -> u32 {
        self.blocks.push((halt::current_cpu().unwrap_or(0), block));
        self.blocks.len() as u32 - 1
    }

    /// Notes that QEMU passes `number` in a block.
    fn learn(&mut self, api: &PluginApi, score: *mut c_void, number: c_uint, block: u32) {
        let Some(&(translating, _)) = self.blocks.get(block as usize) else { return };
        let is_known = self.slots.iter().any(|(cpu, _)| *cpu == translating);
        if self.constant_numbers && translating != 0 && !is_known {
            self.slots.push((translating, InlineSlot::of(api, score, number)));
        }
    }
}

/// Address of the executing CPU's state; 0 before the first block.
static EXECUTING: AtomicUsize = AtomicUsize::new(0);

// Generated code keeps the address of the CPU's state in this register (`TCG_AREG0` of
// tcg/*/tcg-target.h). Compare it, and pass it on as an additional argument if it is another one.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".hidden kerntune_on_turn",
    ".globl kerntune_on_turn",
    "kerntune_on_turn:",
    "cmp rbp, qword ptr [rip + {executing}]",
    "jne 2f",
    "ret",
    "2:",
    "mov rdx, rbp",
    "jmp {turn}",
    executing = sym EXECUTING,
    turn = sym on_turn,
);
#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".hidden kerntune_on_turn",
    ".globl kerntune_on_turn",
    "kerntune_on_turn:",
    "adrp x2, {executing}",
    "ldr x2, [x2, :lo12:{executing}]",
    "cmp x2, x19",
    "b.ne 2f",
    "ret",
    "2:",
    "mov x2, x19",
    "b {turn}",
    executing = sym EXECUTING,
    turn = sym on_turn,
);

// SAFETY: the code above, which passes its arguments on to `on_turn`, a safe function.
unsafe extern "C" {
    safe fn kerntune_on_turn(number: c_uint, argument: *mut c_void);
}

/// Returns the callback for the beginning of a block, and its argument.
pub(super) fn turn_callback(slot: Option<InlineSlot>) -> (VcpuCallback, *mut c_void) {
    let assumed = slot.map_or(UNKNOWN, |slot| slot.number as usize);
    (kerntune_on_turn, assumed as *mut c_void)
}

/// Handles the first block of a turn, on the CPU with this state. QEMU passes the number of the CPU
/// that translated the block.
#[cold]
extern "C" fn on_turn(number: c_uint, assumed: *mut c_void, state: usize) {
    with(|plugin| {
        let RecorderPlugin { runner, turns: Some(turns), .. } = plugin else { return Ok(()) };
        let assumed = assumed as usize;
        let cpu = turns.number(state).filter(|_| assumed == UNKNOWN || assumed == number as usize);
        let Some(cpu) = cpu else {
            return Err(Failure(format!(
                "this QEMU does not tell its {} CPUs apart as its generated code did up to now; record with one CPU",
                turns.cpus
            )));
        };
        EXECUTING.store(state, Ordering::Relaxed);
        runner.turn(cpu)
    });
}

/// Executes the hooks at the beginning of a block.
pub(super) extern "C" fn on_block(number: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let RecorderPlugin { api, score, runner, turns: Some(turns), registers, bytes, .. } = plugin else {
            return Ok(());
        };
        let block = argument as u64 as u32;
        turns.learn(api, *score, number, block);
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        match turns.blocks.get(block as usize) {
            Some((_, block)) => runner.begin(block, &mut cpu),
            None => Ok(()),
        }
    });
}

/// Executes the hooks before an instruction.
pub(super) extern "C" fn on_instruction(_: c_uint, argument: *mut c_void) {
    with(|plugin| {
        let RecorderPlugin { api, runner, turns: Some(turns), registers, bytes, .. } = plugin else {
            return Ok(());
        };
        let (block, at) = (argument as u64 as u32, (argument as u64 >> 32) as usize);
        let mut cpu = QemuCpu { api, registers, bytes: *bytes };
        match turns.blocks.get(block as usize) {
            Some((_, block)) => runner.before(block, at, &mut cpu),
            None => Ok(()),
        }
    });
}

/// Handles a halt in a block whose hooks callbacks execute.
pub(super) extern "C" fn on_halt(number: c_uint, argument: *mut c_void) {
    halt::account();
    on_instruction(number, argument);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_numbered_in_the_order_in_which_they_begin() {
        let mut turns = CpuTurns::new(2);
        let numbers = [0x7000, 0x9000, 0x7000, 0x8000, 0x9000].map(|state| turns.number(state));
        assert_eq!(numbers, [Some(0), Some(1), Some(0), None, Some(1)], "a third state is no CPU of ours");
    }

    #[test]
    fn the_argument_of_a_turn_is_the_number_that_the_block_was_made_for() {
        let slot = InlineSlot { number: 3, address: 0x1000 };
        assert_eq!(turn_callback(Some(slot)).1 as usize, 3);
        assert_eq!(turn_callback(None).1 as usize, UNKNOWN);
    }
}
