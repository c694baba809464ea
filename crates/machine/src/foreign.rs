//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::console::Console;
use crate::{dwarf_lines, results, user_binary};
use kerntune_kernel::Symbols;
use std::path::Path;

/// A guest's console, which comes in pieces.
pub fn console(bytes: &[u8]) {
    let mut console = Console::follow(Path::new("/nonexistent"));
    for piece in bytes.chunks(61) {
        console.take(piece);
    }
    let _ = (console.tail(), console.phase());
}

/// A program whose functions are traced.
pub fn user_binary(bytes: &[u8]) {
    let _ = user_binary::parse(bytes, "attack");
}

/// A kernel's debug information, asked for a line.
pub fn source_lines(bytes: &[u8], file: &str, line: u64) {
    if let Ok(symbols) = Symbols::parse(bytes, Path::new("attack")) {
        let _ = dwarf_lines::addresses_in(bytes, file, line, &symbols);
    }
}

/// What a guest sends, unpacked into `directory`.
pub fn results(archive: &Path, directory: &Path) {
    let _ = results::unpack(archive, directory);
}
