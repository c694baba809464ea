//! Readers of ELF files.

use kerntune_kernel::Symbols;
use std::path::Path;

/// What a guest image needs to know of a program.
pub fn guest(bytes: &[u8]) {
    kerntune_guest::foreign::elf(bytes);
}

/// The function table of a kernel.
pub fn kernel(bytes: &[u8]) {
    let Ok(symbols) = Symbols::parse(bytes, Path::new("attack")) else { return };
    for function in symbols.functions() {
        let _ = (function.end(), symbols.lookup(function.address), symbols.address_of(&function.name));
    }
}

/// The linker's hash in a file, and in notes alone.
pub fn build_id(bytes: &[u8]) {
    kerntune_kernel::parsers::build_id(bytes);
}

/// Where a source line's code is.
pub fn source_lines(bytes: &[u8]) {
    kerntune_machine::foreign::source_lines(bytes, "p.c", 8);
}

/// What the recorder is told of a traced program.
pub fn user(bytes: &[u8]) {
    kerntune_machine::foreign::user_binary(bytes);
}
