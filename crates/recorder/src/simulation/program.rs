//! Random kernels and programs, as x86 code.

use super::STRIDE;
use kerntune_isa::{GuestIsa, Isa};
use proptest::prelude::*;

/// Address of the table of function addresses.
pub(super) const TABLE: u64 = 0xffff_ffff_c000_0000;
pub(super) const USER_TABLE: u64 = 0x10_0000;

/// `mov eax, [rax]`.
pub(super) const DEVICE: [u8; 2] = [0x8b, 0x00];

/// Action of a function before its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProgramStep {
    Nop,
    /// Access to a device.
    Device,
    Call(u64),
    CallIndirect(u64),
    Syscall,
}

/// End of a function.
#[derive(Debug, Clone, Copy)]
pub(super) enum FunctionEnd {
    Return,
    Jump(u64),
    JumpIndirect(u64),
    /// Jump through a table in memory.
    JumpTable(u64),
    /// Conditional jump, followed by a return.
    JumpIf(u64),
}

/// Indices of the thunks for indirect calls and jumps, and for returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThunkIndices {
    /// Thunk that jumps to the address in `rax`.
    pub(super) indirect: u64,
    /// Thunk that returns.
    pub(super) returns: u64,
}

/// `call 1f; nop; 1: mov [rsp], rax; ret`, as in `arch/x86/lib/retpoline.S`.
pub(super) const RETPOLINE: [u8; 11] = [0xe8, 1, 0, 0, 0, 0x90, 0x48, 0x89, 0x04, 0x24, 0xc3];

#[derive(Debug, Clone)]
pub(super) struct FunctionBody {
    pub(super) ops: Vec<ProgramStep>,
    pub(super) end: FunctionEnd,
    pub(super) traced: bool,
}

/// Assembles a function at `at`. Function numbers count from `base` in the same half.
pub(super) fn assemble(body: &FunctionBody, base: u64, at: u64, thunks: Option<ThunkIndices>) -> Vec<u8> {
    let mut code = Vec::new();
    let near = |code: &mut Vec<u8>, opcode: u8, to: u64| {
        let next = at + code.len() as u64 + 5;
        code.push(opcode);
        code.extend_from_slice(&((base + to * STRIDE).wrapping_sub(next) as u32).to_le_bytes());
    };
    let rax = |code: &mut Vec<u8>, to: u64| {
        code.extend_from_slice(&[0x48, 0xb8]);
        code.extend_from_slice(&(base + to * STRIDE).to_le_bytes());
    };
    for op in &body.ops {
        match *op {
            ProgramStep::Nop => code.push(0x90),
            ProgramStep::Device => code.extend_from_slice(&DEVICE),
            ProgramStep::Call(to) => near(&mut code, 0xe8, to),
            ProgramStep::CallIndirect(to) => {
                rax(&mut code, to);
                match thunks {
                    Some(thunks) => near(&mut code, 0xe8, thunks.indirect),
                    None => code.extend_from_slice(&[0xff, 0xd0]),
                }
            }
            ProgramStep::Syscall => code.extend_from_slice(&[0x0f, 0x05]),
        }
    }
    match body.end {
        FunctionEnd::Return => match thunks {
            Some(thunks) => near(&mut code, 0xe9, thunks.returns),
            None => code.push(0xc3),
        },
        FunctionEnd::Jump(to) => near(&mut code, 0xe9, to),
        FunctionEnd::JumpIndirect(to) => {
            rax(&mut code, to);
            match thunks {
                Some(thunks) => near(&mut code, 0xe9, thunks.indirect),
                None => code.extend_from_slice(&[0xff, 0xe0]),
            }
        }
        FunctionEnd::JumpTable(to) => {
            // `mov rax, to; jmp [rax * 8 + table]`, with a 32-bit displacement.
            code.extend_from_slice(&[0x48, 0xb8]);
            code.extend_from_slice(&to.to_le_bytes());
            code.extend_from_slice(&[0xff, 0x24, 0xc5]);
            let table = if GuestIsa::is_kernel(base) { TABLE } else { USER_TABLE };
            code.extend_from_slice(&(table as u32).to_le_bytes());
        }
        FunctionEnd::JumpIf(to) => {
            let next = at + code.len() as u64 + 6;
            code.extend_from_slice(&[0x0f, 0x84]);
            code.extend_from_slice(&((base + to * STRIDE).wrapping_sub(next) as u32).to_le_bytes());
            code.push(0xc3);
        }
    }
    assert!(code.len() < STRIDE as usize);
    code
}

/// Generates functions that call and jump only to later functions, so that every program ends.
pub(super) fn bodies(count: u64, first: u64, user: bool) -> impl Strategy<Value = Vec<FunctionBody>> {
    let body =
        move |at: u64| {
            let later = move || (at + 1).max(first)..count.max(at + 2);
            let last = at + 1 >= count;
            let nop = prop_oneof![Just(ProgramStep::Nop), Just(ProgramStep::Device)].boxed();
            let op = match (last, user) {
                (true, false) => nop,
                (true, true) => prop_oneof![nop, Just(ProgramStep::Syscall)].boxed(),
                (false, false) => prop_oneof![
                    nop,
                    later().prop_map(ProgramStep::Call),
                    later().prop_map(ProgramStep::CallIndirect)
                ]
                .boxed(),
                (false, true) => prop_oneof![
                    nop,
                    Just(ProgramStep::Syscall),
                    later().prop_map(ProgramStep::Call),
                    later().prop_map(ProgramStep::CallIndirect)
                ]
                .boxed(),
            };
            let end = match last {
                true => Just(FunctionEnd::Return).boxed(),
                false => prop_oneof![
                    2 => Just(FunctionEnd::Return),
                    1 => later().prop_map(FunctionEnd::Jump),
                    1 => later().prop_map(FunctionEnd::JumpIndirect),
                    1 => later().prop_map(FunctionEnd::JumpTable),
                    1 => later().prop_map(FunctionEnd::JumpIf)
                ]
                .boxed(),
            };
            (prop::collection::vec(op, 0..4), end, any::<bool>())
                .prop_map(|(ops, end, traced)| FunctionBody { ops, end, traced })
        };
    (0..count).map(body).collect::<Vec<_>>()
}
