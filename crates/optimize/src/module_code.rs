//! Functions of a module's file.

use crate::Result;
use kerntune_debuginfo::{Elf, SymbolKind};
use kerntune_kernel::{KernelModule, KernelModules};

/// Section with a module's code, apart from what the compiler sets aside.
pub(crate) const TEXT: &str = ".text";

/// Function of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleFunction {
    pub name: String,
    /// Section that has its code, such as [`TEXT`].
    pub section: String,
    /// Offset in the section in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

impl ModuleFunction {
    /// Returns the offset of the byte after the last.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// Reads the module of this name, without those that it depends on.
///
/// # Errors
/// A module that the kernel lacks or that cannot be read.
pub(crate) fn module(modules: &KernelModules, name: &str) -> Result<Option<KernelModule>> {
    Ok(modules.load([name])?.into_iter().find(|module| module.name == name))
}

/// Returns the functions of a module that have a size, by section in the order of the file and by
/// offset.
///
/// # Errors
/// A file that is no module.
pub(crate) fn functions(module: &KernelModule) -> Result<Vec<ModuleFunction>> {
    let read = || -> kerntune_debuginfo::Result<Vec<ModuleFunction>> {
        let elf = Elf::parse(&module.bytes)?;
        let sections = elf.code_sections()?;
        let mut functions = Vec::new();
        for symbol in elf.symbols() {
            let symbol = symbol?;
            let place = sections.iter().position(|section| Some(section.index) == symbol.section);
            let Some(place) = place.filter(|_| symbol.kind == SymbolKind::Function && symbol.size > 0) else {
                continue;
            };
            let section = sections[place].name.clone();
            let (name, offset) = (symbol.name.into_owned(), symbol.address);
            functions.push((place, ModuleFunction { name, section, offset, size: symbol.size }));
        }
        functions.sort_by(|(one, a), (two, b)| (one, a.offset, &a.name).cmp(&(two, b.offset, &b.name)));
        Ok(functions.into_iter().map(|(_, function)| function).collect())
    };
    read().map_err(|error| {
        let (path, reason) = (module.path.clone(), error.to_string());
        kerntune_kernel::Error::BadModule { path, reason }.into()
    })
}
