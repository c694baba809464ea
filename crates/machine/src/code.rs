//! The bytes of functions in an ELF file, and where instructions begin in them.

use iced_x86::{Decoder, DecoderOptions};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, SectionKind};
use std::path::Path;

/// The code sections of a file, by address.
pub struct Code {
    sections: Vec<(u64, Vec<u8>)>,
}

impl Code {
    /// Reads them; the reason if they cannot be read.
    pub fn load(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        let file: ElfFile64 = ElfFile64::parse(&*bytes).map_err(|e| e.to_string())?;
        let mut sections = Vec::new();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            sections.push((section.address(), section.data().map_err(|e| e.to_string())?.to_vec()));
        }
        Ok(Self { sections })
    }

    /// The addresses at which the instructions of a function begin, as linked. A kernel that patches
    /// itself at boot keeps them but within what it patches.
    pub fn boundaries(&self, start: u64, size: u64) -> Option<Vec<u64>> {
        let bytes = self.sections.iter().find_map(|(address, bytes)| {
            let from = usize::try_from(start.checked_sub(*address)?).ok()?;
            let to = from.checked_add(usize::try_from(size).ok()?)?;
            bytes.get(from..to.min(bytes.len()))
        })?;
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut boundaries = Vec::new();
        while decoder.can_decode() {
            boundaries.push(decoder.ip());
            let _ = decoder.decode();
        }
        Some(boundaries)
    }
}
