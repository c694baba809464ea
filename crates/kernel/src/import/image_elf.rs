//! The ELF file that a bzImage unpacks to: the kernel with its sections and without symbols.

use kerntune_debuginfo::{Elf, Result, Section};

/// Unpacked kernel image.
pub(crate) struct ImageElf<'data> {
    pub bytes: &'data [u8],
    sections: Vec<Section<'data>>,
}

impl<'data> ImageElf<'data> {
    pub fn parse(bytes: &'data [u8]) -> Result<Self> {
        Ok(Self { bytes, sections: Elf::parse(bytes)?.sections()? })
    }

    /// Returns address and bytes of a section.
    pub fn section(&self, name: &str) -> Option<(u64, &'data [u8])> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        Some((section.start, section.data))
    }

    /// Returns the section in memory that has this address.
    pub fn section_at(&self, address: u64) -> Option<&Section<'data>> {
        self.sections.iter().find(|section| section.loaded && (section.start..section.end).contains(&address))
    }
}
