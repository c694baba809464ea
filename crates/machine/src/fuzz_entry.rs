//! Entry points for fuzzing: parsers that are otherwise private.

use crate::console::ConsoleReader;
use crate::{dwarf_lines, results, user_binary};
use kerntune_kernel::Symbols;
use std::path::Path;

/// Reads a guest's console in pieces.
pub fn console(bytes: &[u8]) {
    let mut console = ConsoleReader::follow(Path::new("/nonexistent"));
    for piece in bytes.chunks(61) {
        console.take(piece);
    }
    let _ = (console.tail(), console.phase());
}

/// Parses a program whose functions are traced.
pub fn user_binary(bytes: &[u8]) {
    let _ = user_binary::parse(bytes, "attack");
}

/// Looks up a line in a kernel's debug information.
pub fn source_lines(bytes: &[u8], file: &str, line: u64) {
    if let Ok(symbols) = Symbols::parse(bytes, Path::new("attack")) {
        let _ = dwarf_lines::addresses_in(bytes, file, line, &symbols);
    }
}

/// Unpacks a guest's result stream into `directory`.
pub fn results(archive: &Path, directory: &Path) {
    let _ = results::unpack(archive, directory);
}
