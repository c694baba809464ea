//! Lookup of functions by address.

use crate::kallsyms::KernelSymbol;
use std::collections::BTreeMap;

/// Marks of the linker script, and labels at which no function begins.
const MARKS: [&str; 10] = [
    "_text",
    "_stext",
    "_etext",
    "_sinittext",
    "_einittext",
    "__entry_text_start",
    "__entry_text_end",
    "__irqentry_text_start",
    "__softirqentry_text_start",
    "__noinstr_text_start",
];
/// Prefixes of symbols just before a function (`-fpatchable-function-entry`, kCFI), or of its alias
/// in early code.
const PREFIXES: [&str; 3] = ["__pfx_", "__cfi_", "__pi_"];
/// Prefixes of labels within the entry of a system call.
const ENTRY_LABELS: [&str; 2] = ["entry_SYSCALL_64_", "entry_SYSCALL_compat_"];
/// Maximum number of functions added later, such as BPF programs and modules.
const LATER_MAX: usize = 100_000;

/// A function of the kernel, of a module or of a BPF program, or of a user program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFunction {
    /// Name; of several names at one address a global and short one.
    pub name: String,
    /// Address at which it runs.
    pub address: u64,
    /// Bytes up to the next symbol.
    pub size: u64,
    /// Source file as a path from the top of the source tree, if known.
    pub file: Option<String>,
    /// Module of the function; `bpf` for BPF programs; the path of a user program; `None` for the
    /// kernel's image.
    pub module: Option<String>,
}

/// Size of a function whose end is unknown: a page is enough, and does not reach a module's memory.
const LAST_BYTES: u64 = 4096;

/// Functions of a running kernel by address. Numbers of functions never change: code that is loaded
/// later, such as a BPF program, is added at the end.
#[derive(Debug, Clone, Default)]
pub struct FunctionTable {
    functions: Vec<KernelFunction>,
    /// Begin, end and number of each initial function, sorted by address.
    ranges: Vec<(u64, u64, u32)>,
    /// End and number of each function added later, by its beginning.
    later: BTreeMap<u64, (u64, u32)>,
}

impl FunctionTable {
    /// Makes a table of the functions among the symbols. A function ends at the next symbol that is
    /// not a label.
    pub fn new(mut symbols: Vec<KernelSymbol>) -> Self {
        symbols.sort_by(|a, b| a.address.cmp(&b.address).then_with(|| rank(a).cmp(&rank(b))));
        let mut table = Self::default();
        let ends_one = |symbol: &&KernelSymbol| !is_label(&symbol.name);
        let mut starts: Vec<u64> = symbols.iter().filter(ends_one).map(|symbol| symbol.address).collect();
        starts.dedup();
        let symbols = symbols.into_iter();
        let mut last = None;
        for symbol in symbols {
            // The first symbol at an address has the best name.
            if last == Some(symbol.address) || !begins_function(&symbol.name) {
                continue;
            }
            last = Some(symbol.address);
            let next = starts.get(starts.partition_point(|start| *start <= symbol.address)).copied();
            let end = next.unwrap_or(symbol.address.saturating_add(LAST_BYTES));
            table.push(symbol, end);
        }
        table
    }

    fn push(&mut self, symbol: KernelSymbol, end: u64) {
        let Ok(number) = u32::try_from(self.functions.len()) else { return };
        self.ranges.push((symbol.address, end, number));
        self.functions.push(KernelFunction {
            name: symbol.name,
            address: symbol.address,
            size: end - symbol.address,
            file: None,
            module: symbol.module,
        });
    }

    /// Adds code that was loaded later, or replaces the code at its address.
    pub fn add(&mut self, name: &str, module: &str, address: u64, size: u64) {
        let Ok(number) = u32::try_from(self.functions.len()) else { return };
        if self.later.len() >= LATER_MAX || size == 0 {
            return;
        }
        let same = |&&(_, known): &&(u64, u32)| {
            let function = &self.functions[known as usize];
            function.name == name && function.size == size
        };
        if self.later.get(&address).filter(same).is_some()
            || self.at_first(address).is_some_and(|known| self.functions[known as usize].name == name)
        {
            return;
        }
        self.later.insert(address, (address.saturating_add(size), number));
        self.functions.push(KernelFunction {
            name: name.into(),
            address,
            size,
            file: None,
            module: Some(module.into()),
        });
    }

    /// Adds a function outside of the kernel, such as a program's: it has a number but no address
    /// for lookups. `None` if there are too many.
    pub fn add_external(&mut self, name: &str, module: &str, address: u64, size: u64) -> Option<u32> {
        let number = u32::try_from(self.functions.len()).ok()?;
        let (name, module) = (name.into(), Some(module.into()));
        self.functions.push(KernelFunction { name, address, size, file: None, module });
        Some(number)
    }

    /// Moves the functions of the kernel's image by this many bytes, wrapping. Functions of modules,
    /// which are moved on their own, no longer contain any address. Returns the number of these.
    pub(crate) fn move_image(&mut self, by: u64) -> usize {
        let functions = &mut self.functions;
        let all = self.ranges.len();
        self.ranges.retain_mut(|(begin, end, number)| {
            let function = &mut functions[*number as usize];
            if function.module.is_some() {
                return false;
            }
            function.address = function.address.wrapping_add(by);
            (*begin, *end) = (begin.wrapping_add(by), end.wrapping_add(by));
            true
        });
        self.ranges.sort_by_key(|range| range.0);
        let modules = all - self.ranges.len();
        // It ended where the first module began.
        if let Some((begin, end, number)) = self.ranges.last_mut().filter(|_| modules > 0) {
            *end = (*end).min(begin.saturating_add(LAST_BYTES));
            self.functions[*number as usize].size = *end - *begin;
        }
        modules
    }

    /// Removes code that was unloaded. Its number is not reused.
    pub fn forget(&mut self, address: u64) {
        self.later.remove(&address);
        if let Ok(at) = self.ranges.binary_search_by_key(&address, |range| range.0) {
            if self.functions[self.ranges[at].2 as usize].module.is_some() {
                self.ranges[at].1 = address;
            }
        }
    }

    /// Returns the number of the function that contains an address.
    pub fn lookup(&self, address: u64) -> Option<u32> {
        if !self.later.is_empty() {
            let before = self.later.range(..=address).next_back();
            if let Some((_, (_, number))) = before.filter(|(_, (end, _))| address < *end) {
                return Some(*number);
            }
        }
        self.at_first(address)
    }

    fn at_first(&self, address: u64) -> Option<u32> {
        let at = self.ranges.partition_point(|range| range.0 <= address).checked_sub(1)?;
        self.ranges.get(at).filter(|range| address < range.1).map(|range| range.2)
    }

    /// Returns all functions, by number.
    pub fn functions(&self) -> &[KernelFunction] {
        &self.functions
    }

    /// Sets source files, one for each function in order.
    pub(crate) fn set_files_in_order(&mut self, files: &mut dyn Iterator<Item = Option<String>>) {
        self.functions.iter_mut().zip(files).for_each(|(function, file)| function.file = file);
    }

    /// Sets source files, if `file` returns one for a function.
    pub fn set_files(&mut self, file: impl Fn(&KernelFunction) -> Option<String>) {
        for function in &mut self.functions {
            function.file = file(function);
        }
    }
}

fn is_label(name: &str) -> bool {
    ENTRY_LABELS.iter().any(|begin| name.starts_with(begin))
        || name.starts_with(".L")
        || name.starts_with('$')
}

fn begins_function(name: &str) -> bool {
    !is_label(name) && !MARKS.contains(&name) && !name.starts_with("__pfx_") && !name.starts_with("__cfi_")
}

/// Rank of a symbol as the name of its address; smaller is better.
fn rank(symbol: &KernelSymbol) -> (bool, bool, bool, usize, &str) {
    let prefixed = PREFIXES.iter().any(|prefix| symbol.name.starts_with(prefix));
    let name = symbol.name.as_str();
    (!begins_function(name), prefixed, !symbol.is_global, name.len(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(address: u64, name: &str, is_global: bool) -> KernelSymbol {
        KernelSymbol { address, name: name.into(), is_global, module: None }
    }

    #[test]
    fn the_function_around_an_address_is_found() {
        let mut table = FunctionTable::new(vec![
            symbol(0x2010, "b", false),
            symbol(0x1000, "_stext", true),
            symbol(0x1000, "__pi_a", true),
            symbol(0x1000, "a", false),
            symbol(0x2000, "__pfx_b", false),
            symbol(0x3000, "_etext", true),
        ]);
        let name =
            |table: &FunctionTable, at| table.lookup(at).map(|n| table.functions()[n as usize].name.clone());
        assert_eq!(name(&table, 0x1000).as_deref(), Some("a"));
        assert_eq!(name(&table, 0x1fff).as_deref(), Some("a"));
        assert_eq!(name(&table, 0x2004), None, "padding before b is nobody's");
        assert_eq!(name(&table, 0x2fff).as_deref(), Some("b"));
        assert_eq!((name(&table, 0xfff), name(&table, 0x3000)), (None, None));
        assert_eq!((table.functions()[0].size, table.functions()[1].size), (0x1000, 0xff0));
        table.add("bpf_prog_1", "bpf", 0x9000, 16);
        assert_eq!(name(&table, 0x900f).as_deref(), Some("bpf_prog_1"));
        table.add("bpf_prog_2", "bpf", 0x9000, 32);
        assert_eq!(name(&table, 0x9010).as_deref(), Some("bpf_prog_2"));
        assert_eq!(table.functions()[2].name, "bpf_prog_1", "a number stays what it was");
        table.forget(0x9000);
        assert_eq!(name(&table, 0x9000), None);
    }

    #[test]
    fn a_label_ends_no_function() {
        let names =
            ["entry_SYSCALL_64", "entry_SYSCALL_64_safe_stack", "entry_SYSCALL_64_after_hwframe", "next"];
        let table =
            FunctionTable::new((1..).zip(names).map(|(at, name)| symbol(at << 4, name, true)).collect());
        let found = [0x10, 0x2f, 0x3f, 0x40].map(|at| table.lookup(at));
        assert_eq!(found, [Some(0), Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn addresses_at_the_end_of_the_space_do_no_harm() {
        let table = FunctionTable::new(vec![symbol(u64::MAX, "z", true), symbol(u64::MAX - 1, "y", true)]);
        assert_eq!(table.lookup(u64::MAX - 1), Some(0));
        assert_eq!(table.lookup(u64::MAX), None);
    }
}
