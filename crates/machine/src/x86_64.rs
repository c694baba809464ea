//! What the recorder has to know of x86-64 kernels, from symbol names.
//!
//! Names of `arch/x86/entry/entry_64.S` and `arch/x86/include/asm/idtentry.h`, Linux 5.8 and later.

use kerntune_kernel::Function;
use kerntune_trace::FunctionKind;

/// The stubs that hand device interrupts to their common entry, by their labels: parts of it, since
/// the stack begins there.
const STUBS: [(&str, &str); 2] =
    [("irq_entries_start", "asm_common_interrupt"), ("spurious_entries_start", "asm_spurious_interrupt")];

/// What part each function plays for the stacks.
pub fn kinds(functions: &[Function]) -> Vec<FunctionKind> {
    let mut kinds: Vec<FunctionKind> = functions.iter().map(kind).collect();
    let place = |wanted: &str| functions.iter().position(|function| function.name == wanted);
    for (stub, entry) in STUBS {
        let (stub, entry) = (place(stub), place(entry).and_then(|entry| u32::try_from(entry).ok()));
        if let (Some(stub), Some(entry)) = (stub, entry) {
            kinds[stub] = FunctionKind::Part(entry);
        }
    }
    kinds
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
        "asm_common_interrupt" | "asm_spurious_interrupt" => FunctionKind::Interrupt,
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
        let stub = [function("asm_common_interrupt", true), function("irq_entries_start", true)];
        assert_eq!(kinds(&stub), [FunctionKind::Interrupt, FunctionKind::Part(0)]);
    }
}
