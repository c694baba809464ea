//! Readers of ELF files.

use kerntune_kernel::{CodeCalls, HintOutcome, Symbols, Triggers};
use std::path::Path;

/// Facts that a guest image needs about a program.
pub fn guest(bytes: &[u8]) {
    kerntune_guest::fuzz_entry::elf(bytes);
}

/// The symbols of a module in a guest's memory.
pub fn guest_module(bytes: &[u8]) {
    kerntune_recorder::fuzz_entry::guest_module(bytes);
}

/// The function table of a kernel.
pub fn kernel(bytes: &[u8]) {
    let Ok(symbols) = Symbols::parse(bytes, Path::new("attack")) else { return };
    for function in symbols.functions() {
        let _ = (function.end(), symbols.lookup(function.address), symbols.address_of(&function.name));
    }
}

/// The calls in a kernel's code.
pub fn code_calls(bytes: &[u8]) {
    let Ok(symbols) = Symbols::parse(bytes, Path::new("attack")) else { return };
    let Ok(calls) = CodeCalls::parse(bytes, Path::new("attack"), &symbols) else { return };
    let functions = symbols.functions().len();
    assert!(calls.calls.iter().all(|call| call.caller < functions && call.callee < functions));
    // No byte of code is read twice, and the shortest call has two.
    let places: u64 = calls.calls.iter().map(|call| u64::from(call.calls) + u64::from(call.jumps)).sum();
    assert!(places <= bytes.len() as u64);
}

/// Event tags that the compiler placed.
pub fn triggers(bytes: &[u8]) {
    let Ok(Some(triggers)) = Triggers::parse(bytes, Path::new("attack")) else { return };
    assert!(triggers.all.windows(2).all(|pair| pair[0].tag < pair[1].tag));
}

/// Outcomes of `likely()` and `unlikely()`.
pub fn hints(bytes: &[u8]) {
    let Ok(outcomes) = HintOutcome::parse(bytes, Path::new("attack")) else { return };
    assert!(outcomes.iter().all(|outcome| outcome.line > 0 && outcome.file.len() < 4096));
}

/// The linker's build id in a file, and in notes alone.
pub fn build_id(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::build_id(bytes);
}

/// Offsets of members in type information.
pub fn btf(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::btf(bytes);
}

/// Offsets of members and source files in debug information.
pub fn debug_info(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::debug_info(bytes);
}

/// The kernel's own configuration and symbols in an unpacked image.
pub fn image_symbols(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::image_symbols(bytes);
}

/// Dependencies of a kernel module.
pub fn module(bytes: &[u8]) {
    kerntune_kernel::fuzz_entry::module(bytes);
}

/// Addresses of a source line.
pub fn source_lines(bytes: &[u8]) {
    kerntune_machine::fuzz_entry::source_lines(bytes, "p.c", 8);
}

/// Description of a traced program for the recorder.
pub fn user(bytes: &[u8]) {
    kerntune_machine::fuzz_entry::user_binary(bytes);
}

/// Inlined functions, by the functions that contain them.
pub fn inlined(bytes: &[u8]) {
    let _ = kerntune_symbols::inlined_in(bytes, "attack");
}

/// Instructions and source lines of every section of code.
pub fn machine_code(bytes: &[u8]) {
    let Ok(code) = kerntune_symbols::MachineCode::parse(bytes, "attack") else { return };
    for start in [0, 0x1000, 0xffff_ffff_8100_0000] {
        let _ = (code.instructions(start..start + 64).len(), code.lines(start..start + 64));
    }
}
