//! Symbols, sections and segments of an ELF file.

use crate::dwarf::DebugInfo;
use crate::{Error, Result};
use object::elf::{EM_X86_64, PF_X, SHF_ALLOC, SHF_EXECINSTR, STB_LOCAL, STB_WEAK, STV_HIDDEN, STV_INTERNAL};
use object::read::elf::{ElfFile64, FileHeader};
use object::{elf, File, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{SectionFlags, SegmentFlags, SymbolFlags};
use std::borrow::Cow;

/// A parsed ELF file.
pub struct Elf<'data>(File<'data>);

/// Section of a file.
#[derive(Debug, Clone)]
pub struct Section<'data> {
    /// Index in the section table.
    pub index: usize,
    /// Name, such as `.text`.
    pub name: String,
    /// Address of the first byte.
    pub start: u64,
    /// Address of the byte after the last.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Contents; empty for a section that the file only announces, such as `.bss`.
    pub data: &'data [u8],
    /// True if it is in memory.
    pub loaded: bool,
    /// True if it is in memory as code.
    pub code: bool,
}

impl<'data> Section<'data> {
    /// Returns at most `size` bytes from an address in the section on; `None` outside.
    pub fn bytes(&self, address: u64, size: u64) -> Option<&'data [u8]> {
        let from = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let rest = self.data.get(from..).filter(|rest| !rest.is_empty())?;
        Some(&rest[..rest.len().min(usize::try_from(size).unwrap_or(usize::MAX))])
    }
}

/// Part of a file that is mapped as code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSegment {
    /// Offset in the file.
    pub offset: u64,
    /// Address of the first byte.
    pub address: u64,
    /// Size in the file in bytes.
    pub size: u64,
}

impl CodeSegment {
    /// Returns the offset in the file of an address in the segment.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let inside = address.checked_sub(self.address).filter(|&inside| inside < self.size)?;
        self.offset.checked_add(inside)
    }

    /// Returns the address of an offset of the file in the segment.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = offset.checked_sub(self.offset).filter(|&inside| inside < self.size)?;
        self.address.checked_add(inside)
    }
}

/// Meaning of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// Function.
    Function,
    /// Function that chooses another at load time.
    Chooser,
    /// Variable.
    Data,
    /// Label of assembly code, or a mark of a linker script.
    Untyped,
    /// Source file of the local symbols that follow.
    File,
    /// Anything else, such as a section.
    Other,
}

/// Visibility of a symbol to the linker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolBinding {
    /// Visible everywhere.
    Global,
    /// Visible everywhere, and yields to a global symbol.
    Weak,
    /// Visible in its object.
    Local,
}

/// Symbol of an ELF file.
#[derive(Debug, Clone)]
pub struct ElfSymbol<'data> {
    /// Name; empty for sections.
    pub name: Cow<'data, str>,
    /// Value: for functions and variables their address.
    pub address: u64,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    /// Meaning.
    pub kind: SymbolKind,
    /// Visibility to the linker.
    pub binding: SymbolBinding,
    /// True if other programs and libraries do not see it.
    pub hidden: bool,
    /// Index of its section; `None` if it is undefined or absolute.
    pub section: Option<usize>,
}

impl<'data> Elf<'data> {
    /// Parses a file of 64 bits.
    ///
    /// # Errors
    /// Any other file, or a damaged one.
    pub fn parse(bytes: &'data [u8]) -> Result<Self> {
        Ok(Self(File::Elf64(ElfFile64::parse(bytes)?)))
    }

    /// Parses a file of 32 or 64 bits.
    ///
    /// # Errors
    /// Any other file, or a damaged one.
    pub fn parse_any(bytes: &'data [u8]) -> Result<Self> {
        Ok(Self(File::parse(bytes)?))
    }

    /// Returns the number of the processor, `EM_…`.
    pub fn machine(&self) -> u16 {
        match &self.0 {
            File::Elf32(file) => file.elf_header().e_machine(file.endian()),
            File::Elf64(file) => file.elf_header().e_machine(file.endian()),
            _ => elf::EM_NONE,
        }
    }

    /// Checks whether the code is for x86-64.
    pub fn is_x86_64(&self) -> bool {
        self.machine() == EM_X86_64
    }

    /// Checks whether there is a section of this name with contents.
    pub fn has_section(&self, name: &str) -> bool {
        self.0.section_by_name(name).is_some_and(|section| section.size() > 0)
    }

    /// Returns the contents of a section, decompressed; `None` if there is none of this name.
    ///
    /// # Errors
    /// Contents outside of the file, or damaged ones.
    pub fn section(&self, name: &str) -> Result<Option<Cow<'data, [u8]>>> {
        let data = self.0.section_by_name(name).map(|section| section.uncompressed_data()).transpose();
        data.map_err(|source| Error::Section { section: name.to_owned(), source })
    }

    /// Returns all sections, in the order of the file.
    ///
    /// # Errors
    /// Names or contents outside of the file.
    pub fn sections(&self) -> Result<Vec<Section<'data>>> {
        self.sections_with(0)
    }

    /// Returns the sections with code, in the order of the file.
    ///
    /// # Errors
    /// Names or contents outside of the file.
    pub fn code_sections(&self) -> Result<Vec<Section<'data>>> {
        self.sections_with(SHF_ALLOC | SHF_EXECINSTR)
    }

    /// Returns the sections that have all these flags.
    fn sections_with(&self, flags: u32) -> Result<Vec<Section<'data>>> {
        let mut found = Vec::new();
        for section in self.0.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let has = |flags: u32| sh_flags & u64::from(flags) == u64::from(flags);
            if has(flags) {
                found.push(Section {
                    index: section.index().0,
                    name: String::from_utf8_lossy(section.name_bytes()?).into_owned(),
                    start: section.address(),
                    end: section.address().saturating_add(section.size()),
                    offset: section.file_range().map_or(0, |(offset, _)| offset),
                    data: section.data()?,
                    loaded: has(SHF_ALLOC),
                    code: has(SHF_ALLOC | SHF_EXECINSTR),
                });
            }
        }
        Ok(found)
    }

    /// Returns the segments with code, in the order of the file.
    pub fn code_segments(&self) -> Vec<CodeSegment> {
        let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        let segments = self.0.segments().filter(|segment| is_code(segment.flags())).map(|segment| {
            let (offset, size) = segment.file_range();
            CodeSegment { offset, address: segment.address(), size }
        });
        segments.collect()
    }

    /// Returns the symbols for the linker, in the order of their table; none in a stripped file.
    pub fn symbols(&self) -> impl Iterator<Item = Result<ElfSymbol<'data>>> + '_ {
        self.0.symbols().map(|symbol| parsed(&symbol))
    }

    /// Returns the symbols for the dynamic linker, in the order of their table.
    pub fn dynamic_symbols(&self) -> impl Iterator<Item = Result<ElfSymbol<'data>>> + '_ {
        self.0.dynamic_symbols().map(|symbol| parsed(&symbol))
    }

    /// Returns the address of the first symbol of this name.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let found = self.0.symbols().find(|symbol| symbol.name_bytes() == Ok(name.as_bytes()));
        found.map(|symbol| symbol.address())
    }

    /// Returns the linker's build id.
    pub fn build_id(&self) -> Option<&'data [u8]> {
        self.0.build_id().ok().flatten()
    }

    /// Returns the name of the separate debug file.
    pub(crate) fn debug_link(&self) -> Option<&'data [u8]> {
        self.0.gnu_debuglink().ok().flatten().map(|(name, _)| name)
    }

    /// Returns the debug information; without any it is empty.
    ///
    /// # Errors
    /// Sections that are damaged.
    pub fn debug_info(&self) -> Result<DebugInfo<'data>> {
        DebugInfo::load(|name| self.section(name))
    }
}

fn parsed<'data>(symbol: &impl ObjectSymbol<'data>) -> Result<ElfSymbol<'data>> {
    let (info, other) = match symbol.flags() {
        SymbolFlags::Elf { st_info, st_other } => (st_info, st_other),
        _ => (0, 0),
    };
    Ok(ElfSymbol {
        name: String::from_utf8_lossy(symbol.name_bytes()?),
        address: symbol.address(),
        size: symbol.size(),
        kind: match info & 0xf {
            elf::STT_FUNC => SymbolKind::Function,
            elf::STT_GNU_IFUNC => SymbolKind::Chooser,
            elf::STT_OBJECT | elf::STT_COMMON => SymbolKind::Data,
            elf::STT_NOTYPE => SymbolKind::Untyped,
            elf::STT_FILE => SymbolKind::File,
            _ => SymbolKind::Other,
        },
        binding: match info >> 4 {
            STB_LOCAL => SymbolBinding::Local,
            STB_WEAK => SymbolBinding::Weak,
            _ => SymbolBinding::Global,
        },
        hidden: matches!(other & 3, STV_HIDDEN | STV_INTERNAL),
        section: symbol.section_index().map(|index| index.0),
    })
}
