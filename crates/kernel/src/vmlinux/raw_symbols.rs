//! Code symbols of an ELF file, as in its symbol table.

use crate::{Error, Result};
use kerntune_debuginfo::{Elf, MappedFile, Section, SymbolBinding, SymbolKind};
use kerntune_work::IoContext;
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

pub(crate) type CodeSymbols<'data> = (Vec<RawSymbol>, HashMap<usize, Section<'data>>);

/// Reads the symbols in executable sections, and these sections by index.
pub(crate) fn read(bytes: &[u8]) -> kerntune_debuginfo::Result<CodeSymbols<'_>> {
    let elf = Elf::parse(bytes)?;
    let sections = elf.code_sections()?.into_iter();
    let code: HashMap<usize, Section> = sections.map(|section| (section.index, section)).collect();
    let mut raw = Vec::new();
    let mut scope: Option<(usize, String)> = None;
    for (index, symbol) in elf.symbols().enumerate() {
        let symbol = symbol?;
        if symbol.kind == SymbolKind::File {
            // The linker's own symbols follow a file symbol without a name.
            scope = Some((index, symbol.name.into_owned())).filter(|(_, name)| !name.is_empty());
            continue;
        }
        let Some(section) = symbol.section.filter(|section| code.contains_key(section)) else { continue };
        if !matches!(symbol.kind, SymbolKind::Function | SymbolKind::Untyped) {
            continue;
        }
        // A linker makes hidden symbols local (with ThinLTO nearly all). They were global in their
        // object, so they follow the last file's symbols without belonging to that file.
        let binding = match symbol.binding {
            SymbolBinding::Local if !symbol.hidden => 2,
            SymbolBinding::Weak => 1,
            _ => 0,
        };
        raw.push(RawSymbol {
            name: symbol.name.into_owned(),
            address: symbol.address,
            size: symbol.size,
            section,
            typed: symbol.kind == SymbolKind::Function,
            binding,
            scope: scope.clone().filter(|_| binding == 2),
        });
    }
    Ok((raw, code))
}

/// Reads all code symbols of an ELF file, in the order of its symbol table.
pub(crate) fn load(vmlinux: &Path) -> Result<Vec<RawSymbol>> {
    let file = MappedFile::open(vmlinux).at("open", vmlinux)?;
    let (raw, _) = read(&file).map_err(|e| Error::Elf { path: vmlinux.to_owned(), reason: e.to_string() })?;
    Ok(raw)
}
