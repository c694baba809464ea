//! From power-on to the end, block by block, under the recorder if one is there.

use crate::cpu::{Cpu, Stop, RDI, RDX, RSI};
use crate::elf;
use iced_x86::{Instruction, Mnemonic};
use kerntune_isa::{Ending, Flow, Guest, Insn, Isa};
use kerntune_recorder::{Block, Driver, Failure};
use std::collections::HashMap;
use std::rc::Rc;

/// Instructions after which a guest is taken for one that hangs.
const LIMIT: u64 = 20_000_000;
/// Instructions of a block at most.
const LONGEST: usize = 512;

/// Where init finds its plan.
const PLAN: u64 = 0x7000_0000;
/// Above init's stack.
const STACK: u64 = 0x7fff_0000_0000;
const STACK_BYTES: u64 = 1 << 16;

/// A CPU with a kernel and an init in its memory, about to begin.
///
/// # Errors
/// In words, if one of them is no program.
pub fn boot(kernel: &[u8], init: &[u8], plan: &[u8]) -> Result<Cpu, String> {
    let mut cpu = Cpu::default();
    cpu.rip = elf::load(kernel, &mut cpu.memory)?;
    cpu.registers[RDI] = elf::load(init, &mut cpu.memory)?;
    cpu.registers[RSI] = STACK - 8;
    cpu.registers[RDX] = PLAN;
    cpu.memory.map(PLAN, plan, plan.len() as u64, false);
    cpu.memory.map(STACK - STACK_BYTES, &[], STACK_BYTES, false);
    Ok(cpu)
}

/// Instructions that run one after the other, and what the recorder does there.
struct Translated {
    insns: Vec<Instruction>,
    hooks: Option<Block>,
}

/// Runs the guest to its end. False if it does not come to one.
///
/// # Errors
/// Those of the recorder.
pub fn run(cpu: &mut Cpu, mut driver: Option<&mut Driver>) -> Result<bool, Failure> {
    let mut blocks: HashMap<u64, Rc<Translated>> = HashMap::new();
    while cpu.executed < LIMIT {
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
            true => Some((Stop::Fault, start)),
            false => execute(cpu, &block, driver.as_deref_mut())?,
        };
        match stopped {
            Some((Stop::Halt, _)) => return Ok(true),
            Some((Stop::Fault, at)) => {
                let said = format!("stand-in CPU: exception at {at:#x}, registers {:x?}\n", cpu.registers);
                cpu.console.extend(said.bytes());
                return Ok(true);
            }
            None => {}
        }
    }
    Ok(false)
}

/// The block that begins where the CPU is; an empty one if there is no code.
fn translate(cpu: &mut Cpu, driver: Option<&mut Driver>) -> Translated {
    let (mut insns, mut raw) = (Vec::new(), Vec::new());
    let mut address = cpu.rip;
    while let Some(insn) = cpu.memory.code(address).and_then(|code| Guest::instructions(code, address).next())
    {
        let decoded = Guest::decode(&insn);
        if decoded.is_invalid() {
            break;
        }
        insns.push(decoded);
        raw.push(insn);
        address = insn.end();
        if ends_block(&insn, &decoded) || insns.len() == LONGEST {
            break;
        }
    }
    let page = cpu.rip >> 12;
    let hooks = driver.map(|driver| driver.translate(&raw, page, cpu));
    Translated { insns, hooks }
}

/// Whether QEMU ends a block with this instruction wherever it is: a branch, an access to a port, or what leaves translated
/// code.
fn ends_block(insn: &Insn, decoded: &Instruction) -> bool {
    let (ending, flow) = Guest::ending(insn);
    let port = matches!(decoded.mnemonic(), Mnemonic::In | Mnemonic::Out);
    flow != Flow::Straight || ending == Ending::ReadClock || port
}

/// Why and where the CPU stopped, if it did.
fn execute(
    cpu: &mut Cpu,
    block: &Translated,
    driver: Option<&mut Driver>,
) -> Result<Option<(Stop, u64)>, Failure> {
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
