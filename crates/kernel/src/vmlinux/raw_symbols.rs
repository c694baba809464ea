//! Code symbols of an ELF file, as in its symbol table.

use crate::{Error, Result};
use kerntune_work::{open_file, IoContext};
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::collections::HashMap;
use std::path::Path;

/// Symbol in an executable section.
#[derive(Debug, Clone)]
pub(crate) struct RawSymbol {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub section: usize,
    pub typed: bool,
    /// 0 global, 1 weak, 2 local.
    pub binding: u8,
    /// For local symbols: index and name of the `STT_FILE` symbol that they follow.
    pub scope: Option<(usize, String)>,
}

pub(crate) struct CodeSection {
    pub name: String,
    pub start: u64,
    pub end: u64,
    /// Offset of the section in the file.
    pub offset: u64,
}

pub(crate) type CodeSymbols = (Vec<RawSymbol>, HashMap<usize, CodeSection>);

/// Reads the symbols in executable sections, and these sections by index.
pub(crate) fn read<'data, R: ReadRef<'data>>(data: R) -> Result<CodeSymbols, object::read::Error> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let mut code = HashMap::new();
    for (index, section) in sections.enumerate() {
        let flags = section.sh_flags(endian);
        let wanted = u64::from(elf::SHF_EXECINSTR | elf::SHF_ALLOC);
        if flags & wanted == wanted {
            let name = String::from_utf8_lossy(sections.section_name(endian, section)?).into_owned();
            let start = section.sh_addr(endian);
            let end = start.saturating_add(section.sh_size(endian));
            let offset = section.sh_offset(endian);
            code.insert(index.0, CodeSection { name, start, end, offset });
        }
    }
    let table = sections.symbols(endian, data, elf::SHT_SYMTAB)?;
    let mut raw = Vec::new();
    let mut scope: Option<(usize, String)> = None;
    for (index, symbol) in table.enumerate() {
        let name = || {
            Ok::<_, object::read::Error>(
                String::from_utf8_lossy(table.symbol_name(endian, symbol)?).into_owned(),
            )
        };
        let kind = symbol.st_type();
        if kind == elf::STT_FILE {
            // The linker's own symbols follow a file symbol without a name.
            scope = Some((index.0, name()?)).filter(|(_, n)| !n.is_empty());
            continue;
        }
        if kind != elf::STT_FUNC && kind != elf::STT_NOTYPE {
            continue;
        }
        let Some(section) = table.symbol_section(endian, symbol, index)?.filter(|s| code.contains_key(&s.0))
        else {
            continue;
        };
        // A linker makes hidden symbols local (with ThinLTO nearly all). They were global in their
        // object, so they follow the last file's symbols without belonging to that file.
        let is_hidden = matches!(symbol.st_visibility(), elf::STV_HIDDEN | elf::STV_INTERNAL);
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL if !is_hidden => 2,
            elf::STB_WEAK => 1,
            _ => 0,
        };
        raw.push(RawSymbol {
            name: name()?,
            address: symbol.st_value(endian),
            size: symbol.st_size(endian),
            section: section.0,
            typed: kind == elf::STT_FUNC,
            binding,
            scope: scope.clone().filter(|_| binding == 2),
        });
    }
    Ok((raw, code))
}

/// Reads all code symbols of an ELF file, in the order of its symbol table.
pub(crate) fn load(vmlinux: &Path) -> Result<Vec<RawSymbol>> {
    let file = open_file(vmlinux).at("open", vmlinux)?;
    let (raw, _) = read(&ReadCache::new(file))
        .map_err(|e| Error::Elf { path: vmlinux.to_owned(), reason: e.to_string() })?;
    Ok(raw)
}
