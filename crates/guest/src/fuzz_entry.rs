//! Entry points for fuzzing: parsers that are otherwise private.

use crate::resolve::{elf, libraries};
use crate::{shell, Workload};

/// Parses the needs of an ELF file.
pub fn elf(bytes: &[u8]) {
    if let Ok(needs) = elf::needs(bytes) {
        let _ = libraries::handed_down("/bin/attack".as_ref(), &needs, &[]);
    }
}

/// Parses the shell strings of a workload.
pub fn shell_words(workload: &Workload) {
    for (_, command) in workload.commands() {
        for word in command {
            let _ = shell::commands(word, false);
        }
    }
}
