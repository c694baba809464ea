//! The ELF file that a bzImage unpacks to: the kernel with its sections and without symbols.

use object::elf::{FileHeader64, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use object::LittleEndian;

/// Section of the image.
#[derive(Debug, Clone)]
pub(crate) struct ImageSection {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub is_code: bool,
    /// Occupies memory when the kernel runs.
    is_loaded: bool,
    /// Offset in the file; `None` for sections without bytes there.
    offset: Option<u64>,
}

/// Unpacked kernel image. Section numbers are those of the file.
pub(crate) struct ImageElf<'data> {
    pub bytes: &'data [u8],
    pub sections: Vec<ImageSection>,
}

impl<'data> ImageElf<'data> {
    /// Reads the section headers.
    pub fn parse(bytes: &'data [u8]) -> object::Result<Self> {
        let header = FileHeader64::<LittleEndian>::parse(bytes)?;
        let endian = header.endian()?;
        let table = header.sections(endian, bytes)?;
        let flag = |section: &<FileHeader64<LittleEndian> as FileHeader>::SectionHeader, flag: u32| {
            section.sh_flags(endian) & u64::from(flag) != 0
        };
        let sections = table.iter().map(|section| {
            Ok(ImageSection {
                name: String::from_utf8_lossy(table.section_name(endian, section)?).into_owned(),
                address: section.sh_addr(endian),
                size: section.sh_size(endian),
                is_code: flag(section, SHF_EXECINSTR) && flag(section, SHF_ALLOC),
                is_loaded: flag(section, SHF_ALLOC),
                offset: (section.sh_type(endian) != SHT_NOBITS).then(|| section.sh_offset(endian)),
            })
        });
        Ok(Self { bytes, sections: sections.collect::<object::Result<_>>()? })
    }

    /// Returns address and bytes of a section.
    pub fn section(&self, name: &str) -> Option<(u64, &'data [u8])> {
        let section = self.sections.iter().find(|section| section.name == name)?;
        let begin = usize::try_from(section.offset?).ok()?;
        let end = begin.checked_add(usize::try_from(section.size).ok()?)?;
        Some((section.address, self.bytes.get(begin..end)?))
    }

    /// Returns the number of the section in memory that has this address.
    pub fn section_at(&self, address: u64) -> Option<usize> {
        self.sections.iter().position(|section| {
            section.is_loaded && address.checked_sub(section.address).is_some_and(|at| at < section.size)
        })
    }
}
