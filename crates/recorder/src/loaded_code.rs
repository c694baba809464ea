//! Functions of code that the kernel loaded, by address.

use kerntune_trace::loaded::{LoadSelection, LoadedFunction};
use kerntune_trace::FunctionKind;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Upper bound for the functions of a run; code that is loaded later has no name.
const MAX_FUNCTIONS: usize = 1 << 21;
/// Other names of a module's first and last function.
const GENERIC: [&str; 2] = ["init_module", "cleanup_module"];

/// A symbol of a module's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSymbol {
    pub name: String,
    pub address: u64,
    /// Size in bytes; 0 if unknown.
    pub size: u64,
    /// False for a label in assembly code.
    pub is_function: bool,
}

/// Code present at an address.
#[derive(Debug, Clone, Copy)]
struct PresentCode {
    end: u64,
    function: u32,
    /// False for a split-off part, which belongs to the function.
    begins: bool,
}

/// Functions of loaded code.
#[derive(Debug, Default)]
pub struct LoadedTable {
    /// Number of the first function.
    first: u32,
    functions: Vec<LoadedFunction>,
    kinds: Vec<FunctionKind>,
    traced: Vec<bool>,
    /// Functions that are traced; `None` for all.
    selection: Option<LoadSelection>,
    /// Numbers by address and name. What is loaded again at its old address is the same function.
    numbers: HashMap<(u64, String), u32>,
    /// Loaded code by address; it never overlaps.
    present: BTreeMap<u64, PresentCode>,
    /// Memory areas of modules, with their end and the function that stands for code without a
    /// symbol.
    areas: BTreeMap<u64, (u64, u32)>,
}

impl LoadedTable {
    /// Creates an empty table; `first` is the number of the first function.
    pub fn new(first: u32, selection: Option<LoadSelection>) -> Self {
        Self { first, selection, ..Self::default() }
    }

    /// Checks whether a function is traced, if it is one of these.
    pub fn traced(&self, function: u32) -> Option<bool> {
        self.traced.get(function.checked_sub(self.first)? as usize).copied()
    }

    /// Returns the number of the first function.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Returns all functions that were ever loaded.
    pub fn functions(&self) -> &[LoadedFunction] {
        &self.functions
    }

    /// Returns the role of a function, if it is one of these.
    pub fn kind(&self, function: u32) -> Option<FunctionKind> {
        self.kinds.get(function.checked_sub(self.first)? as usize).copied()
    }

    /// Returns the code at an address that a symbol covers.
    fn at(&self, address: u64) -> Option<(u64, PresentCode)> {
        let (&start, &code) = self.present.range(..=address).next_back()?;
        (address < code.end).then_some((start, code))
    }

    /// Returns true if there is no room for more functions.
    pub fn is_full(&self) -> bool {
        self.functions.len() >= MAX_FUNCTIONS
    }

    /// Returns true if a symbol covers the address.
    pub fn covers(&self, address: u64) -> bool {
        self.at(address).is_some()
    }

    /// Returns the function that contains `address`.
    pub fn containing(&self, address: u64) -> Option<u32> {
        match self.at(address) {
            Some((_, code)) => Some(code.function),
            None => self.area(address),
        }
    }

    /// Returns the function that stands for code without a symbol in the area around an address.
    fn area(&self, address: u64) -> Option<u32> {
        let (_, &(end, function)) = self.areas.range(..=address).next_back()?;
        (address < end).then_some(function)
    }

    /// Returns the function that begins at `address`; `None` for a split-off part.
    pub fn starting(&self, address: u64) -> Option<u32> {
        self.present.get(&address).filter(|code| code.begins).map(|code| code.function)
    }

    fn define(&mut self, name: String, module: &str, range: Range<u64>, kind: FunctionKind) -> u32 {
        let size = range.end.saturating_sub(range.start);
        let function = self.first + self.functions.len() as u32;
        let number = *self.numbers.entry((range.start, name.clone())).or_insert(function);
        let known = self.functions.get((number - self.first) as usize);
        if number != function && known.is_some_and(|known| known.module == module && known.size == size) {
            return number;
        }
        self.numbers.insert((range.start, name.clone()), function);
        let traced = self.selection.as_ref().is_none_or(|selection| selection.traces(&name, module));
        self.traced.push(traced);
        self.functions.push(LoadedFunction { name, module: module.into(), address: range.start, size });
        self.kinds.push(kind);
        function
    }

    /// Adds a module with these areas and symbols of code.
    pub fn add_module(&mut self, module: &str, areas: &[Range<u64>], mut symbols: Vec<CodeSymbol>) {
        areas.iter().for_each(|area| self.remove(area.clone()));
        if let Some(area) = areas.first() {
            let rest = self.define(format!("[{module}]"), module, area.clone(), FunctionKind::Plain);
            self.areas.extend(areas.iter().map(|area| (area.start, (area.end, rest))));
        }
        // Of symbols at one address, the best name is the first.
        let rank = |symbol: &CodeSymbol| {
            (!symbol.is_function, GENERIC.contains(&symbol.name.as_str()), symbol.size == 0)
        };
        symbols.sort_by(|a, b| (a.address, rank(a), &a.name).cmp(&(b.address, rank(b), &b.name)));
        symbols.dedup_by_key(|symbol| symbol.address);
        let mut inside_until = 0;
        symbols.retain(|symbol| {
            let is_inner_label = !symbol.is_function && symbol.address < inside_until;
            inside_until = inside_until.max(symbol.address.saturating_add(symbol.size));
            !is_inner_label
        });
        let ends: Vec<u64> = (0..symbols.len())
            .map(|at| {
                let CodeSymbol { address, size, .. } = symbols[at];
                let area = areas.iter().find(|area| area.contains(&address));
                let limit = area.map_or(u64::MAX, |area| area.end);
                let next = symbols.get(at + 1).map_or(limit, |next| next.address.min(limit));
                if size == 0 {
                    next
                } else {
                    address.saturating_add(size).min(next)
                }
            })
            .collect();
        let mut numbers: HashMap<&str, Option<u32>> = HashMap::new();
        let (parts, whole): (Vec<usize>, Vec<usize>) =
            (0..symbols.len()).partition(|at| owner(&symbols[*at].name).is_some());
        for at in whole {
            let symbol = &symbols[at];
            let kind = if symbol.is_function { FunctionKind::Plain } else { FunctionKind::Label };
            let function = self.define(symbol.name.clone(), module, symbol.address..ends[at], kind);
            self.present.insert(symbol.address, PresentCode { end: ends[at], function, begins: true });
            // A name that two functions have owns no part.
            numbers.entry(&symbol.name).and_modify(|number| *number = None).or_insert(Some(function));
        }
        for at in parts {
            let symbol = &symbols[at];
            let owner = owner(&symbol.name).and_then(|owner| numbers.get(owner).copied().flatten());
            let (function, begins) = match owner {
                Some(owner) => (owner, false),
                None => {
                    let range = symbol.address..ends[at];
                    (self.define(symbol.name.clone(), module, range, FunctionKind::Plain), true)
                }
            };
            self.present.insert(symbol.address, PresentCode { end: ends[at], function, begins });
        }
    }

    /// Adds one function.
    pub fn add(&mut self, name: String, module: &str, range: Range<u64>) {
        self.remove(range.clone());
        let function = self.define(name, module, range.clone(), FunctionKind::Plain);
        self.present.insert(range.start, PresentCode { end: range.end, function, begins: true });
    }

    /// Removes the module's area that begins at `address`, if one does.
    pub fn free(&mut self, address: u64) {
        if let Some(&(end, _)) = self.areas.get(&address) {
            self.remove(address..end);
        }
    }

    /// Removes all code that has an address of the range.
    pub fn remove(&mut self, range: Range<u64>) {
        let first = self.at(range.start).map_or(range.start, |(start, _)| start);
        let gone: Vec<u64> = self.present.range(first..range.end.max(first)).map(|(at, _)| *at).collect();
        self.present.retain(|at, _| gone.binary_search(at).is_err());
        self.areas.retain(|start, (end, _)| *end <= range.start || *start >= range.end);
    }
}

/// Returns the function of which a name is a split-off part.
fn owner(name: &str) -> Option<&str> {
    name.rsplit_once(".cold").map(|(owner, _)| owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn symbol(name: &str, address: u64, size: u64) -> CodeSymbol {
        CodeSymbol { name: name.into(), address, size, is_function: true }
    }

    fn label(name: &str, address: u64) -> CodeSymbol {
        CodeSymbol { is_function: false, ..symbol(name, address, 0) }
    }

    /// Name of the function that contains an address.
    fn name(table: &LoadedTable, address: u64) -> Option<&str> {
        let number = table.containing(address)? - table.first();
        Some(table.functions()[number as usize].name.as_str())
    }

    #[test]
    fn parts_aliases_labels_and_code_without_a_symbol() {
        let mut table = LoadedTable::new(50, None);
        let symbols = vec![
            symbol("init_module", 0x9000, 32),
            symbol("brd_init", 0x9000, 32),
            symbol("brd_submit.cold", 0x1100, 16),
            symbol("brd_submit", 0x1000, 32),
            label("inside", 0x1010),
            label("routine", 0x1200),
            symbol("twice.cold", 0x1110, 8),
            symbol("twice", 0x1040, 8),
            symbol("twice", 0x1048, 8),
        ];
        table.add_module("brd", &[0x1000..0x2000, 0x9000..0x9100], symbols);
        let names = [0x1000, 0x101f, 0x1108, 0x1020, 0x9000, 0x1200, 0x1112];
        let expected =
            ["brd_submit", "brd_submit", "brd_submit", "[brd]", "brd_init", "routine", "twice.cold"];
        assert_eq!(names.map(|address| name(&table, address)), expected.map(Some));
        assert_eq!((name(&table, 0xfff), name(&table, 0x2000)), (None, None));
        let begins = [0x1000, 0x1010, 0x1100, 0x1110].map(|address| table.starting(address).is_some());
        assert_eq!(begins, [true, false, false, true]);
        assert_eq!((table.covers(0x1000), table.covers(0x1020)), (true, false));
        let kind = |address| table.starting(address).and_then(|function| table.kind(function));
        assert_eq!([0x1000, 0x1200].map(kind), [Some(FunctionKind::Plain), Some(FunctionKind::Label)]);
        assert_eq!((table.kind(49), table.kind(50)), (None, Some(FunctionKind::Plain)));
    }

    #[test]
    fn freed_memory_has_no_name_and_the_next_load_its_own() {
        let mut table = LoadedTable::new(5, None);
        table.add_module("one", from_ref(&(0x1000..0x2000)), vec![symbol("first", 0x1000, 64)]);
        let first = table.containing(0x1010);
        table.free(0x1008);
        assert_eq!(table.containing(0x1010), first, "no area begins there");
        table.free(0x1000);
        assert_eq!((table.containing(0x1010), table.starting(0x1000)), (None, None));
        table.add_module("two", from_ref(&(0x0800..0x1020)), vec![symbol("second", 0x1000, 16)]);
        assert_eq!([0x1000, 0x1010].map(|address| name(&table, address)), [Some("second"), Some("[two]")]);
        table.add_module("one", from_ref(&(0x1000..0x2000)), vec![symbol("first", 0x1000, 64)]);
        assert_eq!(table.containing(0x1010), first, "the same at the same address");
        assert_eq!(name(&table, 0x900), None, "the other module has gone");
        table.add("bpf_prog_1_x".into(), "bpf", 0x1020..0x1060);
        assert_eq!([0x1000, 0x1020].map(|address| name(&table, address)), [None, Some("bpf_prog_1_x")]);
        table.remove(0x1020..0x1060);
        assert_eq!(table.functions().len(), 5);
        assert_eq!(table.containing(0x1020), None);
    }
}
