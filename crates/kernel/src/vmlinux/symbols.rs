//! Functions of a kernel, from the symbol table of its `vmlinux`.

use crate::vmlinux::raw_symbols::{read, RawSymbol};
use crate::vmlinux::source_map::SourceMap;
use crate::vmlinux::stubs;
use crate::vmlinux::symbol_groups::{group, SymbolGroup};
use crate::{Error, Result};
use kerntune_debuginfo::{MappedFile, Section};
use kerntune_isa::{GuestIsa, Isa};
use kerntune_work::IoContext;
use std::collections::HashMap;
use std::path::Path;

/// Function of a kernel, or a part that the compiler split off (`foo.cold`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelFunction {
    /// Symbol name. Of several symbols at one address, typed, sized, global and short ones come
    /// first.
    pub name: String,
    /// Other names at the same address, sorted.
    pub aliases: Vec<String>,
    /// Address of the first byte, as linked.
    pub address: u64,
    /// Size in bytes: the symbol's own, or up to the next symbol if it has none.
    pub size: u64,
    /// Source file relative to the source tree (`net/ipv4/tcp.c`) if the kernel was built here
    /// ([`Kernel::symbols`](crate::Kernel::symbols)). Otherwise the name without its directory
    /// (`tcp.c`), which symbol tables have only for local symbols; a global function has it if its
    /// cold part does.
    pub file: Option<String>,
    /// For `foo.cold`: the index of `foo`. `None` if it is ambiguous.
    pub part_of: Option<usize>,
    /// Assembly code that is no C-callable function, such as `entry_SYSCALL_64` (`SYM_CODE_START`).
    pub is_code_label: bool,
}

impl KernelFunction {
    /// Returns the address of the byte after the last.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// Function table of a kernel, sorted by address.
///
/// Labels inside functions, `__pfx_` and `__cfi_` preambles, and marks of the linker script such as
/// `_stext` are left out; [`Symbols::address_of`] knows labels and marks nevertheless.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    functions: Vec<KernelFunction>,
    /// For each function, the function that contains its start, if any (assembly nests entries).
    around: Vec<Option<usize>>,
    addresses: HashMap<String, u64>,
    text_bytes: u64,
}

impl Symbols {
    /// Reads the symbol table of an ELF file. Debug information is not read.
    pub fn load(vmlinux: &Path) -> Result<Self> {
        Self::parse(&MappedFile::open(vmlinux).at("open", vmlinux)?, vmlinux)
    }

    /// Reads the table from bytes in memory; `path` is for error messages.
    pub fn parse(data: &[u8], path: &Path) -> Result<Self> {
        let refuse = |reason: String| Error::Elf { path: path.to_owned(), reason };
        let (raw, sections) = read(data).map_err(|e| refuse(e.to_string()))?;
        if raw.is_empty() {
            return Err(refuse("it has no symbols of functions (stripped?); a kernel's vmlinux has".into()));
        }
        let code =
            |address: u64, size: u64| sections.values().find_map(|section| section.bytes(address, size));
        Ok(Self::from_raw(raw, &sections, code))
    }

    /// Sets the source files that the map knows.
    pub(crate) fn set_files(&mut self, sources: &SourceMap) {
        for function in &mut self.functions {
            if let Some(path) = sources.path(function.address) {
                function.file = Some(path.to_string());
            }
        }
    }

    /// Returns all functions, sorted by address.
    pub fn functions(&self) -> &[KernelFunction] {
        &self.functions
    }

    /// Returns the index of the function that contains `address`, the innermost if they nest.
    pub fn lookup(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|f| f.address <= address);
        let mut at = after.checked_sub(1);
        while let Some(index) = at {
            if address < self.functions[index].end() {
                return Some(index);
            }
            at = self.around[index];
        }
        None
    }

    /// Returns the address of a code symbol: function, alias, label inside a function, or mark of
    /// the linker script. Of local symbols with one name, the first.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    /// Returns the labels that other tools show for interrupt stubs, which are separate functions
    /// here.
    pub fn stub_labels(&self) -> impl Iterator<Item = &'static str> + '_ {
        GuestIsa::STUB_LABELS.iter().copied().filter(|label| self.address_of(label).is_some())
    }

    /// Returns the index of the whole function that `index` is, or is a part of.
    pub fn whole(&self, index: usize) -> usize {
        self.functions.get(index).and_then(|f| f.part_of).unwrap_or(index)
    }

    /// Returns the bytes of `.text` that functions cover, without the padding between them.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn from_raw<'data>(
        raw: Vec<RawSymbol>,
        sections: &HashMap<usize, Section>,
        code: impl Fn(u64, u64) -> Option<&'data [u8]>,
    ) -> Self {
        let mut addresses = HashMap::new();
        for symbol in &raw {
            addresses.entry(symbol.name.clone()).or_insert(symbol.address);
        }
        let groups = stubs::split(group(raw, sections), code);
        let parts = ColdParts::of(&groups);
        let mut functions: Vec<KernelFunction> = groups.into_iter().map(function).collect();
        for (index, parent) in parts.parents.iter().enumerate() {
            functions[index].part_of = *parent;
            if let Some(parent) = *parent {
                if functions[parent].file.is_none() {
                    functions[parent].file = functions[index].file.clone();
                }
            }
        }
        let around = enclosing(&functions);
        let text = sections.values().find(|s| s.name == ".text").map(|s| (s.start, s.end));
        let text_bytes = text.map_or(0, |(start, end)| covered(&functions, start, end));
        Self { functions, around, addresses, text_bytes }
    }
}

/// Converts a group to a function.
fn function(group: SymbolGroup) -> KernelFunction {
    let mut symbols = group.symbols.into_iter();
    let first = symbols.next().expect("a group is made from at least one symbol");
    let mut aliases: Vec<String> = symbols.map(|s| s.name).filter(|n| *n != first.name).collect();
    aliases.sort();
    aliases.dedup();
    KernelFunction {
        name: first.name,
        aliases,
        address: first.address,
        size: group.size,
        file: first.scope.map(|(_, name)| name),
        part_of: None,
        is_code_label: !first.typed,
    }
}

/// Strips the suffix of a cold part: `foo.cold` and `foo.cold.3` → `foo`.
fn cold_part_of(name: &str) -> Option<&str> {
    let (whole, rest) = name.rsplit_once(".cold")?;
    let number_ok =
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    (number_ok && !whole.is_empty()).then_some(whole)
}

/// Parent function of each cold part.
struct ColdParts {
    parents: Vec<Option<usize>>,
}

impl ColdParts {
    /// Prefers a static function of the same source file, then a global one, then a static one
    /// elsewhere if it is the only one.
    fn of(groups: &[SymbolGroup]) -> Self {
        let mut by_name: HashMap<&str, Vec<(usize, &RawSymbol)>> = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            for symbol in &group.symbols {
                by_name.entry(&symbol.name).or_default().push((index, symbol));
            }
        }
        let scope = |s: &RawSymbol| s.scope.as_ref().map(|(id, _)| *id);
        let parents = groups
            .iter()
            .map(|group| {
                // Folded parts of several functions share an address; the first known one counts.
                group.symbols.iter().find_map(|part| {
                    let candidates = by_name.get(cold_part_of(&part.name)?)?;
                    let same_file = candidates
                        .iter()
                        .find(|(_, s)| s.binding == 2 && scope(s).is_some() && scope(s) == scope(part));
                    let global = || candidates.iter().find(|(_, s)| s.binding != 2);
                    let only = || candidates.first().filter(|_| candidates.len() == 1);
                    same_file.or_else(global).or_else(only).map(|(index, _)| *index)
                })
            })
            .enumerate()
            .map(|(index, parent)| parent.filter(|p| *p != index))
            .collect();
        Self { parents }
    }
}

fn enclosing(functions: &[KernelFunction]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut around = Vec::with_capacity(functions.len());
    for (index, function) in functions.iter().enumerate() {
        while open.last().is_some_and(|outer| functions[*outer].end() <= function.address) {
            open.pop();
        }
        around.push(open.last().copied());
        // In a damaged file sizes may overlap without nesting: a function that reaches further
        // stays below on the stack.
        open.push(index);
    }
    around
}

fn covered(functions: &[KernelFunction], start: u64, end: u64) -> u64 {
    let (mut total, mut done) = (0, start);
    for function in functions {
        let (from, to) = (function.address.max(done), function.end().min(end));
        if from < to {
            total += to - from;
            done = to;
        }
    }
    total
}

#[cfg(test)]
#[path = "symbols_tests.rs"]
mod tests;
