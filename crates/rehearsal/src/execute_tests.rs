//! Single instructions, checked against the CPU's manual (Intel SDM, volume 2).

use crate::cpu::{EmulatedCpu, StatusFlags, StopReason, RAX, RCX, RDI, RDX, RSP};
use kerntune_isa::{GuestIsa, Isa};

const CODE: u64 = 0x1000;
const DATA: u64 = 0x4000;

/// Returns a CPU that has executed one instruction; `flags` are those set before it.
fn after(code: &[u8], registers: &[(usize, u64)], flags: &str) -> (EmulatedCpu, Result<(), StopReason>) {
    let has = |flag| flags.contains(flag);
    let flags = StatusFlags { carry: has('c'), zero: has('z'), sign: has('s'), overflow: has('o') };
    let mut cpu = EmulatedCpu { flags, ..EmulatedCpu::default() };
    cpu.memory.map(DATA, &[], 4096, false);
    for &(register, value) in registers {
        cpu.registers[register] = value;
    }
    let insn = GuestIsa::instructions(code, CODE).next().unwrap();
    assert_eq!(insn.length, code.len());
    let end = cpu.execute(&GuestIsa::decode(&insn));
    (cpu, end)
}

fn flags(cpu: &EmulatedCpu) -> String {
    let StatusFlags { carry, zero, sign, overflow } = cpu.flags;
    [('c', carry), ('z', zero), ('s', sign), ('o', overflow)].iter().filter(|f| f.1).map(|f| f.0).collect()
}

/// Name, code, rax and rcx before, flags before, rax after, flags after.
type ExecuteCase = (&'static str, &'static [u8], [u64; 2], &'static str, u64, &'static str);

#[test]
fn results_and_flags() {
    let cases: [ExecuteCase; 22] = [
        ("add al, cl", &[0x00, 0xc8], [0x1ff, 1], "", 0x100, "cz"),
        ("add eax, ecx", &[0x01, 0xc8], [!0 << 32 | 0x7fff_ffff, 1], "", 1 << 31, "so"),
        ("adc rax, rcx", &[0x48, 0x11, 0xc8], [!0, 0], "c", 0, "cz"),
        ("sbb rax, rcx", &[0x48, 0x19, 0xc8], [0, 0], "c", !0, "cs"),
        ("sbb rax, rcx", &[0x48, 0x19, 0xc8], [5, !0], "c", 5, "c"),
        ("sub ax, cx", &[0x66, 0x29, 0xc8], [0x18000, 1], "", 0x17fff, "o"),
        ("cmp rax, rcx", &[0x48, 0x39, 0xc8], [1, 2], "", 1, "cs"),
        ("and rax, rcx", &[0x48, 0x21, 0xc8], [6, 3], "co", 2, ""),
        ("neg rax", &[0x48, 0xf7, 0xd8], [1 << 63, 0], "", 1 << 63, "cso"),
        ("inc al", &[0xfe, 0xc0], [0x7f, 0], "c", 0x80, "cso"),
        ("dec eax", &[0xff, 0xc8], [0, 0], "c", 0xffff_ffff, "cs"),
        ("not al", &[0xf6, 0xd0], [0x1f0, 0], "z", 0x10f, "z"),
        ("mov ah, cl", &[0x88, 0xcc], [0x1234, 0xff], "", 0xff34, ""),
        ("movsx rax, cl", &[0x48, 0x0f, 0xbe, 0xc1], [0, 0x80], "", !0x7f, ""),
        ("shl eax, 1", &[0xd1, 0xe0], [3 << 30, 0], "", 1 << 31, "cs"),
        ("sar al, 1", &[0xd0, 0xf8], [0x81, 0], "", 0xc0, "cs"),
        ("shr eax, cl: no shift at all", &[0xd3, 0xe8], [!0, 32], "z", 0xffff_ffff, "z"),
        ("rol ax, 4", &[0x66, 0xc1, 0xc0, 4], [0x1234, 0], "z", 0x2341, "cz"),
        ("imul eax, ecx", &[0x0f, 0xaf, 0xc1], [1 << 16, 1 << 16], "", 0, "co"),
        ("bswap eax", &[0x0f, 0xc8], [0x1122_3344, 0], "", 0x4433_2211, ""),
        ("cmovb eax, ecx, which is not below", &[0x0f, 0x42, 0xc1], [!0, 1], "", 0xffff_ffff, ""),
        ("setg al", &[0x0f, 0x9f, 0xc0], [0x100, 0], "so", 0x101, "so"),
    ];
    for (name, code, [rax, rcx], before, expected, set) in cases {
        let (cpu, end) = after(code, &[(RAX, rax), (RCX, rcx)], before);
        assert_eq!((cpu.registers[RAX], flags(&cpu).as_str()), (expected, set), "{name}");
        assert_eq!((end, cpu.rip), (Ok(()), CODE + code.len() as u64));
    }
}

#[test]
fn pairs_of_registers() {
    let pair = |code: &[u8], rax, rdx, rcx| {
        let (cpu, end) = after(code, &[(RAX, rax), (RDX, rdx), (RCX, rcx)], "");
        end.map(|()| (cpu.registers[RAX], cpu.registers[RDX]))
    };
    let minus = |n: i32| u64::from((-n) as u32);
    assert_eq!(pair(&[0x48, 0xf7, 0xe1], !0, 0, 2), Ok((!1, 1)), "mul rcx");
    assert_eq!(pair(&[0x48, 0xf7, 0xe9], !0, 0, 2), Ok((!1, !0)), "imul rcx");
    assert_eq!(pair(&[0x48, 0xf7, 0xf1], 7, 1, 16), Ok((1 << 60, 7)), "div rcx");
    assert_eq!(pair(&[0xf7, 0xf9], minus(7), minus(1), 2), Ok((minus(3), minus(1))), "idiv ecx");
    assert_eq!(pair(&[0x48, 0xf7, 0xf1], 0, 0, 0), Err(StopReason::Fault), "by 0");
    assert_eq!(pair(&[0x48, 0xf7, 0xf1], 0, 16, 16), Err(StopReason::Fault), "too large");
    assert_eq!(pair(&[0x48, 0x99], 1 << 63, 0, 0), Ok((1 << 63, !0)), "cqo");
    assert_eq!(pair(&[0x48, 0x0f, 0xb1, 0xd1], 5, 9, 5), Ok((5, 9)), "cmpxchg rcx, rdx");
    assert_eq!(pair(&[0x48, 0x0f, 0xb1, 0xd1], 5, 9, 6), Ok((6, 9)), "cmpxchg rcx, rdx");
}

#[test]
fn memory_stacks_and_branches() {
    let (cpu, end) = after(&[0xf3, 0xaa], &[(RCX, 2), (RDI, DATA), (RAX, 7)], ""); // rep stosb
    assert_eq!((end, cpu.rip, cpu.registers[RCX], cpu.memory.read(DATA, 2)), (Ok(()), CODE, 1, Some(7)));
    let (cpu, _) = after(&[0xe8, 0x10, 0, 0, 0], &[(RSP, DATA + 8)], ""); // call
    assert_eq!((cpu.rip, cpu.memory.read(DATA, 8)), (CODE + 0x15, Some(CODE + 5)));
    let (cpu, _) = after(&[0x7c, 0x10], &[], "s"); // jl
    assert_eq!(cpu.rip, CODE + 0x12);
    assert_eq!(after(&[0x50], &[(RSP, DATA)], "").1, Err(StopReason::Fault), "push where nothing is");
    assert_eq!(after(&[0xf4], &[], "").1, Err(StopReason::Halt));
    assert_eq!(after(&[0x0f, 0x0b], &[], "").1, Err(StopReason::Fault), "ud2");
}
