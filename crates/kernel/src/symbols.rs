//! The functions of a kernel, from the symbol table of its `vmlinux`.

use crate::raw_symbols::{read, CodeSection, Raw};
use crate::sources::Sources;
use crate::symbol_groups::{group, Group};
use crate::{stubs, Error, Result};
use kerntune_isa::{Guest, Isa};
use kerntune_work::{open_file, IoContext};
use object::{ReadCache, ReadRef};
use std::collections::HashMap;
use std::path::Path;

/// One function, or a part of one that the compiler put elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name; of several at one address a typed, sized, global and short one.
    pub name: String,
    /// Other names at the same address, sorted.
    pub aliases: Vec<String>,
    /// Address of the first byte, as linked.
    pub address: u64,
    /// Bytes: the symbol's own size, or up to the next symbol where it has none.
    pub size: u64,
    /// The source file from the top of the source tree (`net/ipv4/tcp.c`) if the kernel was built here
    /// ([`Kernel::symbols`](crate::Kernel::symbols)). Otherwise the name without its directory
    /// (`tcp.c`), which symbol tables say of local symbols only; a global function has it if its cold
    /// part does.
    pub file: Option<String>,
    /// For `foo.cold`: the index of `foo`. None if it cannot be told which of several it is.
    pub part_of: Option<usize>,
    /// Assembly code that is no C-callable function, such as `entry_SYSCALL_64` (`SYM_CODE_START`).
    pub is_code_label: bool,
}

impl Function {
    /// Address of the byte after the last.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// The function table of a kernel, sorted by address.
///
/// Left out are labels inside of functions, `__pfx_` and `__cfi_` preambles, and the marks of the
/// linker script such as `_stext`; [`Symbols::address_of`] knows labels and marks nevertheless.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    functions: Vec<Function>,
    /// For each function the one around its start, if any (assembly has entries inside of entries).
    around: Vec<Option<usize>>,
    addresses: HashMap<String, u64>,
    text_bytes: u64,
}

impl Symbols {
    /// Reads the symbol table of an ELF file; debug information is not needed and not read.
    pub fn load(vmlinux: &Path) -> Result<Self> {
        let file = open_file(vmlinux).at("open", vmlinux)?;
        Self::parse(&ReadCache::new(file), vmlinux)
    }

    /// The same from bytes in memory or a cache over a file; `path` is for error messages.
    pub fn parse<'data, R: ReadRef<'data>>(data: R, path: &Path) -> Result<Self> {
        let refuse = |reason: String| Error::Elf { path: path.to_owned(), reason };
        let (raw, sections) = read(data).map_err(|e| refuse(e.to_string()))?;
        if raw.is_empty() {
            return Err(refuse("it has no symbols of functions (stripped?); a kernel's vmlinux has".into()));
        }
        let code = |address: u64, size: u64| {
            let section = sections.values().find(|s| (s.start..s.end).contains(&address))?;
            let offset = section.offset.checked_add(address - section.start)?;
            data.read_bytes_at(offset, size.min(section.end - address)).ok().map(<[u8]>::to_vec)
        };
        Ok(Self::from_raw(raw, &sections, code))
    }

    /// Puts in the paths of source files where they are known.
    pub(crate) fn set_files(&mut self, sources: &Sources) {
        for function in &mut self.functions {
            if let Some(path) = sources.path(function.address) {
                function.file = Some(path.to_string());
            }
        }
    }

    /// All functions, by address.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The index of the function that `address` is in; the innermost, if one is inside another.
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

    /// The address of any symbol in code: functions, aliases, labels inside of functions, and the
    /// linker script's marks. Of local symbols with one name the first is meant.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }

    /// The names under which others know the stubs of interrupts, each of which is a function here.
    pub fn stub_labels(&self) -> impl Iterator<Item = &'static str> + '_ {
        Guest::STUB_LABELS.iter().copied().filter(|label| self.address_of(label).is_some())
    }

    /// The whole function that `index` is or is a part of.
    pub fn whole(&self, index: usize) -> usize {
        self.functions.get(index).and_then(|f| f.part_of).unwrap_or(index)
    }

    /// Bytes of `.text` that functions cover, padding between them left out.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn from_raw(
        raw: Vec<Raw>,
        sections: &HashMap<usize, CodeSection>,
        code: impl Fn(u64, u64) -> Option<Vec<u8>>,
    ) -> Self {
        let mut addresses = HashMap::new();
        for symbol in &raw {
            addresses.entry(symbol.name.clone()).or_insert(symbol.address);
        }
        let groups = stubs::split(group(raw, sections), code);
        let parts = Parts::of(&groups);
        let mut functions: Vec<Function> = groups.into_iter().map(function).collect();
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

/// The function at an address.
fn function(group: Group) -> Function {
    let mut symbols = group.symbols.into_iter();
    let first = symbols.next().expect("a group is made from at least one symbol");
    let mut aliases: Vec<String> = symbols.map(|s| s.name).filter(|n| *n != first.name).collect();
    aliases.sort();
    aliases.dedup();
    Function {
        name: first.name,
        aliases,
        address: first.address,
        size: group.size,
        file: first.scope.map(|(_, name)| name),
        part_of: None,
        is_code_label: !first.typed,
    }
}

/// `foo.cold` and `foo.cold.3` → `foo`.
fn cold_part_of(name: &str) -> Option<&str> {
    let (whole, rest) = name.rsplit_once(".cold")?;
    let number_ok =
        rest.is_empty() || rest.strip_prefix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    (number_ok && !whole.is_empty()).then_some(whole)
}

/// Which function each cold part belongs to.
struct Parts {
    parents: Vec<Option<usize>>,
}

impl Parts {
    /// A static function of the same source file is meant before a global one, a global one before
    /// a static one elsewhere; the latter only if there is just one.
    fn of(groups: &[Group]) -> Self {
        let mut by_name: HashMap<&str, Vec<(usize, &Raw)>> = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            for symbol in &group.symbols {
                by_name.entry(&symbol.name).or_default().push((index, symbol));
            }
        }
        let scope = |s: &Raw| s.scope.as_ref().map(|(id, _)| *id);
        let parents = groups
            .iter()
            .map(|group| {
                // Folded parts of several functions share an address; the first that is known counts.
                group.symbols.iter().find_map(|part| {
                    let candidates = by_name.get(cold_part_of(&part.name)?)?;
                    let same_file =
                        candidates.iter().find(|(_, s)| s.binding == 2 && scope(s) == scope(part));
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

fn enclosing(functions: &[Function]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut around = Vec::with_capacity(functions.len());
    for (index, function) in functions.iter().enumerate() {
        while open.last().is_some_and(|outer| functions[*outer].end() <= function.address) {
            open.pop();
        }
        around.push(open.last().copied());
        // Sizes from foreign bytes may overlap without nesting: keep the one that reaches further below.
        open.push(index);
    }
    around
}

fn covered(functions: &[Function], start: u64, end: u64) -> u64 {
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
