//! Made-up kernels and programs: what their functions do, as x86 code.

use super::STRIDE;
use kerntune_isa::{Guest, Isa};
use proptest::prelude::*;

/// Where words are that hold the functions' addresses.
pub(super) const TABLE: u64 = 0xffff_ffff_c000_0000;
pub(super) const USER_TABLE: u64 = 0x10_0000;

/// `mov eax, [rax]`.
pub(super) const DEVICE: [u8; 2] = [0x8b, 0x00];

/// What a function does before its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Nop,
    /// Reads a device.
    Device,
    Call(u64),
    CallIndirect(u64),
    Syscall,
}

/// How it ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Return,
    Jump(u64),
    JumpIndirect(u64),
    /// Through a table in memory.
    JumpTable(u64),
    /// On a condition; returns otherwise.
    JumpIf(u64),
}

/// The functions that stand for indirect calls and jumps, and for returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thunks {
    /// Goes where `rax` says.
    pub(super) indirect: u64,
    /// Returns.
    pub(super) returns: u64,
}

/// `call 1f; nop; 1: mov [rsp], rax; ret`, as `arch/x86/lib/retpoline.S` has it.
pub(super) const RETPOLINE: [u8; 11] = [0xe8, 1, 0, 0, 0, 0x90, 0x48, 0x89, 0x04, 0x24, 0xc3];

#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) ops: Vec<Op>,
    pub(super) end: End,
    pub(super) traced: bool,
}

/// A body's code at `at`; numbers of functions are those of the same half, from `base`.
pub(super) fn assemble(body: &Body, base: u64, at: u64, thunks: Option<Thunks>) -> Vec<u8> {
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
            Op::Nop => code.push(0x90),
            Op::Device => code.extend_from_slice(&DEVICE),
            Op::Call(to) => near(&mut code, 0xe8, to),
            Op::CallIndirect(to) => {
                rax(&mut code, to);
                match thunks {
                    Some(thunks) => near(&mut code, 0xe8, thunks.indirect),
                    None => code.extend_from_slice(&[0xff, 0xd0]),
                }
            }
            Op::Syscall => code.extend_from_slice(&[0x0f, 0x05]),
        }
    }
    match body.end {
        End::Return => match thunks {
            Some(thunks) => near(&mut code, 0xe9, thunks.returns),
            None => code.push(0xc3),
        },
        End::Jump(to) => near(&mut code, 0xe9, to),
        End::JumpIndirect(to) => {
            rax(&mut code, to);
            match thunks {
                Some(thunks) => near(&mut code, 0xe9, thunks.indirect),
                None => code.extend_from_slice(&[0xff, 0xe0]),
            }
        }
        End::JumpTable(to) => {
            // `mov rax, to; jmp [rax * 8 + table]`, its displacement of 32 bits.
            code.extend_from_slice(&[0x48, 0xb8]);
            code.extend_from_slice(&to.to_le_bytes());
            code.extend_from_slice(&[0xff, 0x24, 0xc5]);
            let table = if Guest::is_kernel(base) { TABLE } else { USER_TABLE };
            code.extend_from_slice(&(table as u32).to_le_bytes());
        }
        End::JumpIf(to) => {
            let next = at + code.len() as u64 + 6;
            code.extend_from_slice(&[0x0f, 0x84]);
            code.extend_from_slice(&((base + to * STRIDE).wrapping_sub(next) as u32).to_le_bytes());
            code.push(0xc3);
        }
    }
    assert!(code.len() < STRIDE as usize);
    code
}

/// Functions that call and jump only to those after them, so that every program ends.
pub(super) fn bodies(count: u64, first: u64, user: bool) -> impl Strategy<Value = Vec<Body>> {
    let body = move |at: u64| {
        let later = move || (at + 1).max(first)..count.max(at + 2);
        let last = at + 1 >= count;
        let nop = prop_oneof![Just(Op::Nop), Just(Op::Device)].boxed();
        let op = match (last, user) {
            (true, false) => nop,
            (true, true) => prop_oneof![nop, Just(Op::Syscall)].boxed(),
            (false, false) => {
                prop_oneof![nop, later().prop_map(Op::Call), later().prop_map(Op::CallIndirect)].boxed()
            }
            (false, true) => prop_oneof![
                nop,
                Just(Op::Syscall),
                later().prop_map(Op::Call),
                later().prop_map(Op::CallIndirect)
            ]
            .boxed(),
        };
        let end = match last {
            true => Just(End::Return).boxed(),
            false => prop_oneof![
                2 => Just(End::Return),
                1 => later().prop_map(End::Jump),
                1 => later().prop_map(End::JumpIndirect),
                1 => later().prop_map(End::JumpTable),
                1 => later().prop_map(End::JumpIf)
            ]
            .boxed(),
        };
        (prop::collection::vec(op, 0..4), end, any::<bool>()).prop_map(|(ops, end, traced)| Body {
            ops,
            end,
            traced,
        })
    };
    (0..count).map(body).collect::<Vec<_>>()
}
