//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::console::Console;
use crate::user_binary;
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
