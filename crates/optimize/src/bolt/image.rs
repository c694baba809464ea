//! The bytes of a linked kernel, by address.

use crate::{Error, Result};
use kerntune_work::IoContext;
use object::elf::{SHF_ALLOC, SHF_EXECINSTR};
use object::{Object, ObjectSection, SectionFlags};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A section that is in memory when the kernel runs, and in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub name: String,
    pub address: u64,
    pub is_code: bool,
    /// Where it is in the file.
    file: Range<usize>,
}

impl Section {
    pub fn end(&self) -> u64 {
        self.address + self.file.len() as u64
    }
}

/// An ELF image.
#[derive(Debug, Clone)]
pub(super) struct Image {
    bytes: Vec<u8>,
    pub sections: Vec<Section>,
    /// Names of all sections.
    names: Vec<String>,
}

impl Image {
    /// # Errors
    /// [`Error::NotRewritable`] for what is no ELF file; of reading.
    pub fn load(vmlinux: &Path, kernel: &str) -> Result<Self> {
        let bytes = fs::read(vmlinux).at("read", vmlinux)?;
        Self::parse(bytes).map_err(|reason| {
            let reason = format!("{} cannot be read: {reason}", vmlinux.display());
            Error::NotRewritable { kernel: kernel.to_string(), reason }
        })
    }

    fn parse(bytes: Vec<u8>) -> std::result::Result<Self, object::Error> {
        let (mut sections, mut names) = (Vec::new(), Vec::new());
        for section in object::File::parse(&*bytes)?.sections() {
            let name = section.name()?.to_string();
            names.push(name.clone());
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let is = |flag: u32| sh_flags & u64::from(flag) != 0;
            if let (true, Some((start, size))) = (is(SHF_ALLOC), section.file_range()) {
                let file = start as usize..start as usize + size as usize;
                sections.push(Section { name, address: section.address(), is_code: is(SHF_EXECINSTR), file });
            }
        }
        sections.retain(|section| !section.file.is_empty() && section.file.end <= bytes.len());
        Ok(Self { bytes, sections, names })
    }

    /// Whether there is a section of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|there| there == name)
    }

    /// The section of this name, if it is in memory and in the file.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The contents of a section of this image.
    pub fn contents(&self, section: &Section) -> &[u8] {
        &self.bytes[section.file.clone()]
    }

    /// Whether there is code at `address`.
    pub fn is_code(&self, address: u64) -> bool {
        self.sections.iter().any(|s| s.is_code && (s.address..s.end()).contains(&address))
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes over what is in memory of `other`, which has the same sections; headers and symbols stay.
    ///
    /// # Errors
    /// In words, if a section is missing, elsewhere or of another size.
    pub fn take(&mut self, other: &Image) -> std::result::Result<(), String> {
        for section in &self.sections {
            let theirs = other.section(&section.name).ok_or_else(|| format!("{} is gone", section.name))?;
            if (theirs.address, theirs.end()) != (section.address, section.end()) {
                return Err(format!("{} is elsewhere", section.name));
            }
            self.bytes[section.file.clone()].copy_from_slice(&other.bytes[theirs.file.clone()]);
        }
        Ok(())
    }

    /// The addresses of code that is different in `other`, which has the same sections.
    pub fn changed_code<'a>(&'a self, other: &'a Image) -> impl Iterator<Item = u64> + 'a {
        self.sections.iter().filter(|section| section.is_code).flat_map(move |section| {
            let ours = self.contents(section);
            let theirs = other.section(&section.name).map_or(&[][..], |theirs| other.contents(theirs));
            let differs = move |at: &usize| theirs.get(*at) != ours.get(*at);
            (0..ours.len()).filter(differs).map(|at| section.address + at as u64)
        })
    }
}
