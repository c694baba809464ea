//! Readers of this crate that have no other door: for tests with damaged input alone.

use crate::{elf, shell, Workload};

/// What a program needs to run.
pub fn elf(bytes: &[u8]) {
    if let Ok(needs) = elf::needs(bytes) {
        let _ = crate::libraries::handed_down("/bin/attack".as_ref(), &needs, &[]);
    }
}

/// The commands in shell strings of a workload.
pub fn shell_words(workload: &Workload) {
    for (_, command) in workload.commands() {
        for word in command {
            let _ = shell::commands(word, false);
        }
    }
}
