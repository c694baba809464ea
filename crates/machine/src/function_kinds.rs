//! Classifies a kernel's functions for the recorder.

use kerntune_isa::{GuestIsa, Isa};
use kerntune_kernel::KernelFunction;
use kerntune_trace::FunctionKind;

/// Returns each function's role for the call stacks.
pub fn kinds(functions: &[KernelFunction]) -> Vec<FunctionKind> {
    let mut kinds: Vec<FunctionKind> = functions.iter().map(kind).collect();
    // Without known stubs in the entry code, all device interrupts are one function.
    let unknown = !functions.iter().any(|function| is_stub(&function.name));
    for (function, kind) in functions.iter().zip(&mut kinds) {
        if unknown && GuestIsa::is_common_interrupt(&function.name) {
            *kind = FunctionKind::Interrupt;
        }
    }
    kinds
}

/// Checks for a stub's name, such as `asm_common_interrupt:0x23` (see `kerntune_kernel`).
fn is_stub(name: &str) -> bool {
    name.split_once(':').is_some_and(|(entry, _)| GuestIsa::is_common_interrupt(entry))
}

fn kind(function: &KernelFunction) -> FunctionKind {
    match function.part_of.and_then(|owner| u32::try_from(owner).ok()) {
        Some(owner) => FunctionKind::Part(owner),
        None if is_stub(&function.name) => FunctionKind::Interrupt,
        None if function.is_code_label => {
            GuestIsa::function_kind(&function.name).unwrap_or(FunctionKind::Label)
        }
        None => GuestIsa::function_kind(&function.name).unwrap_or(FunctionKind::Plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_entry_code() {
        let function = |name: &str, label| KernelFunction {
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
        let cold = KernelFunction { part_of: Some(7), ..function("tcp_v4_rcv.cold", false) };
        assert_eq!(kind(&cold), FunctionKind::Part(7));
        let stub = [function("asm_common_interrupt", true), function("asm_common_interrupt:0x23", true)];
        assert_eq!(kinds(&stub), [FunctionKind::Label, FunctionKind::Interrupt]);
    }
}
