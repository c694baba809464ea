//! Runs the guest from power-on to its end, block by block, optionally under the recorder.

use crate::cpu::{EmulatedCpu, StopReason, RDI, RDX, RSI};
use crate::elf;
use iced_x86::{Instruction, Mnemonic};
use kerntune_isa::{BlockEnding, BlockFlow, GuestIsa, Insn, Isa};
use kerntune_recorder::{Failure, HookRunner, HookedBlock};
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum number of instructions; a guest that exceeds it hangs.
const MAX_INSNS: u64 = 20_000_000;
/// Maximum number of instructions of a block.
const MAX_BLOCK_INSNS: usize = 512;

/// Address of init's plan.
const PLAN_ADDRESS: u64 = 0x7000_0000;
/// Top of init's stack.
const STACK_TOP: u64 = 0x7fff_0000_0000;
const STACK_BYTES: u64 = 1 << 16;

/// Returns a CPU with kernel, init and plan in its memory, ready to run.
///
/// # Errors
/// A description, if a program is not an ELF file.
pub fn boot(kernel: &[u8], init: &[u8], plan: &[u8]) -> Result<EmulatedCpu, String> {
    let mut cpu = EmulatedCpu::default();
    cpu.rip = elf::load(kernel, &mut cpu.memory)?;
    cpu.registers[RDI] = elf::load(init, &mut cpu.memory)?;
    cpu.registers[RSI] = STACK_TOP - 8;
    cpu.registers[RDX] = PLAN_ADDRESS;
    cpu.memory.map(PLAN_ADDRESS, plan, plan.len() as u64, false);
    cpu.memory.map(STACK_TOP - STACK_BYTES, &[], STACK_BYTES, false);
    Ok(cpu)
}

/// Instructions of a block, and the recorder's hooks in it.
struct TranslatedBlock {
    insns: Vec<Instruction>,
    hooks: Option<HookedBlock>,
}

/// Runs the guest to its end. Returns `false` if it reaches the limit of instructions first.
///
/// # Errors
/// Failures of the recorder.
pub fn run(cpu: &mut EmulatedCpu, mut driver: Option<&mut HookRunner>) -> Result<bool, Failure> {
    let mut blocks: HashMap<u64, Rc<TranslatedBlock>> = HashMap::new();
    while cpu.executed < MAX_INSNS {
        let start = cpu.rip;
        let block = match blocks.get(&start) {
            Some(block) => Rc::clone(block),
            None => {
                let block = Rc::new(translate(cpu, driver.as_deref_mut()));
                blocks.insert(start, Rc::clone(&block));
                block
            }
        };
        let stopped = match block.insns.is_empty() {
            true => Some((StopReason::Fault, start)),
            false => execute(cpu, &block, driver.as_deref_mut())?,
        };
        match stopped {
            Some((StopReason::Halt, _)) => return Ok(true),
            Some((StopReason::Fault, at)) => {
                let said = format!("stand-in CPU: exception at {at:#x}, registers {:x?}\n", cpu.registers);
                cpu.console.extend(said.bytes());
                return Ok(true);
            }
            None => {}
        }
    }
    Ok(false)
}

/// Translates the block at the CPU's current address; empty if there is no code.
fn translate(cpu: &mut EmulatedCpu, driver: Option<&mut HookRunner>) -> TranslatedBlock {
    let (mut insns, mut raw) = (Vec::new(), Vec::new());
    let mut address = cpu.rip;
    while let Some(insn) =
        cpu.memory.code(address).and_then(|code| GuestIsa::instructions(code, address).next())
    {
        let decoded = GuestIsa::decode(&insn);
        if decoded.is_invalid() {
            break;
        }
        insns.push(decoded);
        raw.push(insn);
        address = insn.end();
        if ends_block(&insn, &decoded) || insns.len() == MAX_BLOCK_INSNS {
            break;
        }
    }
    let page = cpu.rip >> 12;
    let hooks = driver.map(|driver| driver.translate(&raw, page, cpu));
    TranslatedBlock { insns, hooks }
}

/// Checks whether QEMU ends a block with this instruction: a branch, an access to a port, or an
/// instruction that leaves the translated code.
fn ends_block(insn: &Insn, decoded: &Instruction) -> bool {
    let (ending, flow) = GuestIsa::ending(insn);
    let port = matches!(decoded.mnemonic(), Mnemonic::In | Mnemonic::Out);
    flow != BlockFlow::Straight || ending == BlockEnding::ReadClock || port
}

/// Executes a block; returns reason and address if the CPU stopped.
fn execute(
    cpu: &mut EmulatedCpu,
    block: &TranslatedBlock,
    driver: Option<&mut HookRunner>,
) -> Result<Option<(StopReason, u64)>, Failure> {
    let mut watched = block.hooks.as_ref().zip(driver);
    if let Some((hooks, driver)) = &mut watched {
        driver.begin(hooks, cpu)?;
    }
    for (at, insn) in block.insns.iter().enumerate() {
        if let Some((hooks, driver)) = &mut watched {
            driver.before(hooks, at, cpu)?;
        }
        if let Err(stop) = cpu.execute(insn) {
            return Ok(Some((stop, insn.ip())));
        }
    }
    Ok(None)
}
