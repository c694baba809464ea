//! Bytes of a linked kernel, by address.

use crate::{Error, Result};
use kerntune_debuginfo::Elf;
use kerntune_work::IoContext;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Section that is both in memory and in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadedSection {
    pub name: String,
    pub address: u64,
    pub is_code: bool,
    /// Range in the file.
    file: Range<usize>,
}

impl LoadedSection {
    pub fn end(&self) -> u64 {
        self.address + self.file.len() as u64
    }
}

/// ELF image of a kernel.
#[derive(Debug, Clone)]
pub(super) struct ElfImage {
    bytes: Vec<u8>,
    pub sections: Vec<LoadedSection>,
    /// Names of all sections, including those not in memory.
    names: Vec<String>,
}

impl ElfImage {
    /// Loads `vmlinux`.
    ///
    /// # Errors
    /// [`Error::NotRewritable`] if it is not an ELF file; files that cannot be read.
    pub fn load(vmlinux: &Path, kernel: &str) -> Result<Self> {
        let bytes = fs::read(vmlinux).at("read", vmlinux)?;
        Self::parse(bytes).map_err(|reason| {
            let reason = format!("{} cannot be read: {reason}", vmlinux.display());
            Error::NotRewritable { kernel: kernel.to_string(), reason }
        })
    }

    fn parse(bytes: Vec<u8>) -> kerntune_debuginfo::Result<Self> {
        let all = Elf::parse_any(&bytes)?.sections()?;
        let names = all.iter().map(|section| section.name.clone()).collect();
        let loaded = all.into_iter().filter(|section| section.loaded && !section.data.is_empty());
        let sections = loaded.map(|section| LoadedSection {
            name: section.name,
            address: section.start,
            is_code: section.code,
            file: section.offset as usize..section.offset as usize + section.data.len(),
        });
        let sections = sections.collect();
        Ok(Self { bytes, sections, names })
    }

    /// Checks whether there is a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|there| there == name)
    }

    /// Returns the section of this name, if it is in memory and in the file.
    pub fn section(&self, name: &str) -> Option<&LoadedSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the contents of a section of this image.
    pub fn contents(&self, section: &LoadedSection) -> &[u8] {
        &self.bytes[section.file.clone()]
    }

    /// Checks whether there is code at `address`.
    pub fn is_code(&self, address: u64) -> bool {
        self.sections.iter().any(|s| s.is_code && (s.address..s.end()).contains(&address))
    }

    /// Returns the whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the memory contents of `other`, which must have the same sections; headers and
    /// symbols stay.
    ///
    /// # Errors
    /// A message if a section is missing, elsewhere or of another size.
    pub fn take(&mut self, other: &ElfImage) -> std::result::Result<(), String> {
        for section in &self.sections {
            let theirs = other.section(&section.name).ok_or_else(|| format!("{} is gone", section.name))?;
            if (theirs.address, theirs.end()) != (section.address, section.end()) {
                return Err(format!("{} is elsewhere", section.name));
            }
            self.bytes[section.file.clone()].copy_from_slice(&other.bytes[theirs.file.clone()]);
        }
        Ok(())
    }

    /// Returns the addresses of code bytes that differ in `other`, which must have the same
    /// sections.
    pub fn changed_code<'a>(&'a self, other: &'a ElfImage) -> impl Iterator<Item = u64> + 'a {
        self.sections.iter().filter(|section| section.is_code).flat_map(move |section| {
            let ours = self.contents(section);
            let theirs = other.section(&section.name).map_or(&[][..], |theirs| other.contents(theirs));
            let differs = move |at: &usize| theirs.get(*at) != ours.get(*at);
            (0..ours.len()).filter(differs).map(|at| section.address + at as u64)
        })
    }
}
