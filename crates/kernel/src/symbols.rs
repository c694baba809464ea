//! The functions of a kernel, from the symbol table of its `vmlinux`.

use crate::sources::Sources;
use crate::{stubs, Error, Result};
use kerntune_work::IoContext;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

/// One function, or a part of one that the compiler put elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let file = File::open(vmlinux).at("open", vmlinux)?;
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

    /// Every symbol in code of an ELF file, in the order of its symbol table.
    pub(crate) fn raw(vmlinux: &Path) -> Result<Vec<Raw>> {
        let file = File::open(vmlinux).at("open", vmlinux)?;
        let (raw, _) = read(&ReadCache::new(file))
            .map_err(|e| Error::Elf { path: vmlinux.to_owned(), reason: e.to_string() })?;
        Ok(raw)
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
        let mut groups = stubs::split(group(raw, sections), code);
        let parts = Parts::of(&groups);
        let mut functions: Vec<Function> = groups.iter_mut().map(Group::take_function).collect();
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

/// A symbol in an executable section.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub name: String,
    pub address: u64,
    pub size: u64,
    pub section: usize,
    pub typed: bool,
    /// 0 global, 1 weak, 2 local.
    pub binding: u8,
    /// Which `STT_FILE` symbol it follows, for local ones.
    pub scope: Option<(usize, String)>,
}

pub(crate) struct CodeSection {
    name: String,
    start: u64,
    end: u64,
    /// In the file.
    offset: u64,
}

pub(crate) type Read = (Vec<Raw>, HashMap<usize, CodeSection>);

/// The symbols in executable sections, and these sections by index.
pub(crate) fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Read, object::read::Error> {
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
            // The linker's own symbols follow one without a name.
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
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => 2,
            elf::STB_WEAK => 1,
            _ => 0,
        };
        raw.push(Raw {
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

/// Preambles, local labels, and marks of the linker script and of `asm` macros: no functions.
fn is_mark(symbol: &Raw) -> bool {
    let name = symbol.name.as_str();
    if name.is_empty() || name.starts_with('.') || name.starts_with("__pfx_") || name.starts_with("__cfi_") {
        return true;
    }
    if symbol.typed || symbol.size != 0 {
        return false;
    }
    let bounds = ["_start", "_end", "_begin"];
    matches!(
        name,
        "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext" | "_end" | "__init_begin" | "__init_end"
    ) || name.starts_with("__") && bounds.iter().any(|b| name.ends_with(b))
        || name.starts_with("$x")
        || name.starts_with("$d")
}

/// The symbols at one address; the first is the one that names it.
pub(crate) struct Group {
    symbols: Vec<Raw>,
    pub size: u64,
}

impl Group {
    /// One symbol at its address.
    pub fn of(symbol: Raw) -> Self {
        Self { size: symbol.size, symbols: vec![symbol] }
    }

    /// The symbol that names it.
    pub fn first(&self) -> &Raw {
        &self.symbols[0]
    }

    fn take_function(&mut self) -> Function {
        let mut symbols = std::mem::take(&mut self.symbols).into_iter();
        let first = symbols.next().expect("a group is made from at least one symbol");
        let mut aliases: Vec<String> = symbols.map(|s| s.name).filter(|n| *n != first.name).collect();
        aliases.sort();
        aliases.dedup();
        Function {
            name: first.name,
            aliases,
            address: first.address,
            size: self.size,
            file: first.scope.map(|(_, name)| name),
            part_of: None,
            is_code_label: !first.typed,
        }
    }
}

/// Merges aliases, drops marks and inner labels, completes sizes; sorted by address.
fn group(mut raw: Vec<Raw>, sections: &HashMap<usize, CodeSection>) -> Vec<Group> {
    let rank = |s: &Raw| (!s.typed, s.size == 0, s.binding, s.name.len());
    raw.sort_by(|a, b| {
        (a.section, a.address, rank(a), &a.name).cmp(&(b.section, b.address, rank(b), &b.name))
    });
    let mut groups: Vec<Group> = Vec::new();
    for at_one in raw.chunk_by(|a, b| (a.section, a.address) == (b.section, b.address)) {
        let symbols: Vec<Raw> = at_one.iter().filter(|s| !is_mark(s)).cloned().collect();
        let size = symbols.iter().map(|s| s.size).max().unwrap_or(0);
        let (section, address) = (at_one[0].section, at_one[0].address);
        let bounds = sections.get(&section).map_or((0, 0), |s| (s.start, s.end));
        // A mark ends an unsized function before it; it is kept as an empty group for that.
        groups.push(Group { symbols: if address < bounds.1 { symbols } else { vec![] }, size });
    }
    let starts: Vec<(usize, u64)> = raw
        .chunk_by(|a, b| (a.section, a.address) == (b.section, b.address))
        .map(|c| (c[0].section, c[0].address))
        .collect();
    // The furthest end of a sized function so far, to know labels inside of it.
    let mut inside = (usize::MAX, 0u64);
    for (at, group) in groups.iter_mut().enumerate() {
        let (section, address) = starts[at];
        if inside.0 != section {
            inside = (section, 0);
        }
        if group.size != 0 {
            inside.1 = inside.1.max(address.saturating_add(group.size));
        } else if address < inside.1 && group.symbols.iter().all(|s| !s.typed) {
            group.symbols.clear();
        } else {
            let next = starts.get(at + 1).filter(|n| n.0 == section).map(|n| n.1);
            let end = next.or_else(|| sections.get(&section).map(|s| s.end)).unwrap_or(address);
            group.size = end.saturating_sub(address);
        }
    }
    groups.retain(|g| !g.symbols.is_empty());
    groups.sort_by_key(|g| g.symbols[0].address);
    groups
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
