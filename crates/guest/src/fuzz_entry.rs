//! Entry points for fuzzing: parsers that are otherwise private.

use crate::oci::{self, RootWriter};
use crate::resolve::{elf, libraries};
use crate::{shell, Workload};
use std::path::Path;

/// Parses the needs of an ELF file.
pub fn elf(bytes: &[u8]) {
    if let Ok(needs) = elf::needs(bytes) {
        let _ = libraries::handed_down("/bin/attack".as_ref(), &needs, &[]);
    }
}

/// Parses the documents of a container image.
pub fn image_documents(bytes: &[u8]) {
    oci::parse_all(bytes);
}

/// Writes a layer of a container image into `root`, an empty directory.
pub fn image_layer(mut bytes: &[u8], root: &Path) {
    if let Ok(mut writer) = RootWriter::new(root) {
        let _ = writer.layer(&mut bytes);
        let _ = writer.finish();
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
