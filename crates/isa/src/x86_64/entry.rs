//! Names of the kernel's entry code.
//!
//! They come from `arch/x86/entry/entry_64.S` and `arch/x86/include/asm/idtentry.h`, Linux 5.8 and
//! later.

use crate::TargetRole;
use kerntune_trace::FunctionKind;

/// Common entries of all device interrupts, reached by a jump from a stub for each vector.
pub const COMMON_ENTRIES: [&str; 2] = ["asm_common_interrupt", "asm_spurious_interrupt"];

/// Prefixes of the names of system call functions: of those that take registers
/// (`arch/x86/include/asm/syscall_wrapper.h`), of those that take arguments
/// (`include/linux/syscalls.h`), the only ones in User-Mode Linux, and of 32-bit ones.
pub const SYSTEM_CALLS: [&str; 5] = ["__x64_sys_", "__do_sys_", "__se_sys_", "sys_", "__ia32_sys_"];

/// Returns the role of a function for the tracking of stacks.
pub fn kind(name: &str) -> Option<FunctionKind> {
    let begins = |with: &str| name.starts_with(with);
    Some(match name {
        "__switch_to_asm" => FunctionKind::SwitchTo,
        // The point of no return of `execve`.
        "begin_new_exec" => FunctionKind::Exec,
        "entry_SYSCALL_64" | "entry_SYSENTER_compat" | "entry_SYSCALL_compat" => FunctionKind::Syscall,
        _ if begins("asm_sysvec_") => FunctionKind::Interrupt,
        _ if begins("asm_exc_") || begins("asm_int80") => FunctionKind::Exception,
        _ if matches!(target_role(name), TargetRole::Indirect) => FunctionKind::Thunk,
        _ if matches!(target_role(name), TargetRole::Return) => FunctionKind::ReturnThunk,
        _ => return None,
    })
}

/// Returns the role of a call or jump target (`arch/x86/lib/retpoline.S`,
/// `include/linux/static_call.h`).
pub fn target_role(name: &str) -> TargetRole {
    let begins = |with: &str| name.starts_with(with);
    match name {
        "__fentry__" | "mcount" => TargetRole::Hook,
        "srso_return_thunk"
        | "srso_alias_return_thunk"
        | "srso_safe_ret"
        | "srso_alias_safe_ret"
        | "retbleed_return_thunk"
        | "call_depth_return_thunk"
        | "its_return_thunk" => TargetRole::Return,
        _ if begins("__x86_return_thunk") => TargetRole::Return,
        _ if begins("__x86_indirect_") => TargetRole::Indirect,
        _ if begins("__SCT__") => TargetRole::Patched,
        _ => TargetRole::Function,
    }
}
