//! What the recorder has to know of x86-64 kernels, from symbol names.
//!
//! Names of `arch/x86/entry/entry_64.S` and `arch/x86/include/asm/idtentry.h`, Linux 5.8 and later.

use kerntune_kernel::Function;
use kerntune_trace::FunctionKind;

/// What all device interrupts have in common, reached by a jump from a stub for each vector.
const COMMON_ENTRIES: [&str; 2] = ["asm_common_interrupt", "asm_spurious_interrupt"];

/// What part each function plays for the stacks.
pub fn kinds(functions: &[Function]) -> Vec<FunctionKind> {
    let mut kinds: Vec<FunctionKind> = functions.iter().map(kind).collect();
    if !functions.iter().any(|function| is_stub(&function.name)) {
        // Entry code in a form that we do not know: all vectors as one.
        for (function, kind) in functions.iter().zip(&mut kinds) {
            if COMMON_ENTRIES.contains(&function.name.as_str()) {
                *kind = FunctionKind::Interrupt;
            }
        }
    }
    kinds
}

/// `asm_common_interrupt:0x23`, see `kerntune_kernel`.
fn is_stub(name: &str) -> bool {
    name.split_once(':').is_some_and(|(entry, _)| COMMON_ENTRIES.contains(&entry))
}

fn kind(function: &Function) -> FunctionKind {
    let name = function.name.as_str();
    if let Some(owner) = function.part_of.and_then(|owner| u32::try_from(owner).ok()) {
        return FunctionKind::Part(owner);
    }
    match name {
        "__switch_to_asm" => FunctionKind::SwitchTo,
        // The point of no return of `execve`.
        "begin_new_exec" => FunctionKind::Exec,
        "entry_SYSCALL_64" | "entry_SYSENTER_compat" | "entry_SYSCALL_compat" => FunctionKind::Syscall,
        _ if is_stub(name) => FunctionKind::Interrupt,
        _ if name.starts_with("asm_sysvec_") => FunctionKind::Interrupt,
        _ if name.starts_with("asm_exc_") || name.starts_with("asm_int80") => FunctionKind::Exception,
        _ if name.starts_with("__x86_indirect_thunk") || name.starts_with("__x86_indirect_call_thunk") => {
            FunctionKind::Thunk
        }
        _ if function.is_code_label => FunctionKind::Label,
        _ => FunctionKind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_entry_code() {
        let function = |name: &str, label| Function {
            name: name.into(),
            aliases: Vec::new(),
            address: 1,
            size: 1,
            file: None,
            part_of: None,
            is_code_label: label,
        };
        assert_eq!(kind(&function("asm_sysvec_apic_timer_interrupt", true)), FunctionKind::Interrupt);
        assert_eq!(kind(&function("asm_exc_page_fault", true)), FunctionKind::Exception);
        assert_eq!(kind(&function("common_interrupt_return", true)), FunctionKind::Label);
        assert_eq!(kind(&function("tcp_v4_rcv", false)), FunctionKind::Plain);
        let cold = Function { part_of: Some(7), ..function("tcp_v4_rcv.cold", false) };
        assert_eq!(kind(&cold), FunctionKind::Part(7));
        let stub = [function("asm_common_interrupt", true), function("asm_common_interrupt:0x23", true)];
        assert_eq!(kinds(&stub), [FunctionKind::Label, FunctionKind::Interrupt]);
    }
}
