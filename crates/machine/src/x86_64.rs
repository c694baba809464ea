//! What the recorder has to know of x86-64 kernels, from symbol names.
//!
//! Names of `arch/x86/entry/entry_64.S` and `arch/x86/include/asm/idtentry.h`, Linux 5.8 and later.

use kerntune_kernel::Function;
use kerntune_trace::FunctionKind;

/// What part a function plays for the stacks.
pub fn kind(function: &Function) -> FunctionKind {
    let name = function.name.as_str();
    if let Some(owner) = function.part_of.and_then(|owner| u32::try_from(owner).ok()) {
        return FunctionKind::Part(owner);
    }
    match name {
        "__switch_to_asm" => FunctionKind::SwitchTo,
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
    }
}
