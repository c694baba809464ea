//! Symbols by address: aliases merged, labels and marks removed, sizes completed.

use crate::vmlinux::raw_symbols::RawSymbol;
use kerntune_debuginfo::Section;
use std::collections::HashMap;

/// Symbols at one address. The first one names it.
pub(crate) struct SymbolGroup {
    pub symbols: Vec<RawSymbol>,
    pub size: u64,
}

impl SymbolGroup {
    /// Creates a group of one symbol.
    pub fn of(symbol: RawSymbol) -> Self {
        Self { size: symbol.size, symbols: vec![symbol] }
    }

    /// Returns the symbol that names the group.
    pub fn first(&self) -> &RawSymbol {
        &self.symbols[0]
    }
}

/// Merges aliases, removes marks and inner labels, and completes sizes. Sorted by address.
pub(crate) fn group(mut raw: Vec<RawSymbol>, sections: &HashMap<usize, Section>) -> Vec<SymbolGroup> {
    let rank = |s: &RawSymbol| (!s.typed, s.size == 0, s.binding, s.name.len());
    raw.sort_by(|a, b| {
        (a.section, a.address, rank(a), &a.name).cmp(&(b.section, b.address, rank(b), &b.name))
    });
    let mut groups: Vec<SymbolGroup> = Vec::new();
    for at_one in raw.chunk_by(|a, b| (a.section, a.address) == (b.section, b.address)) {
        let symbols: Vec<RawSymbol> = at_one.iter().filter(|s| !is_mark(s)).cloned().collect();
        let size = symbols.iter().map(|s| s.size).max().unwrap_or(0);
        let (section, address) = (at_one[0].section, at_one[0].address);
        let bounds = sections.get(&section).map_or((0, 0), |s| (s.start, s.end));
        // A mark ends an unsized function before it, so it is kept as an empty group.
        groups.push(SymbolGroup { symbols: if address < bounds.1 { symbols } else { vec![] }, size });
    }
    let starts: Vec<(usize, u64)> = raw
        .chunk_by(|a, b| (a.section, a.address) == (b.section, b.address))
        .map(|c| (c[0].section, c[0].address))
        .collect();
    // Furthest end of the sized functions so far, to recognize labels inside them.
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

/// Checks for preambles, local labels, and marks of the linker script and of `asm` macros.
fn is_mark(symbol: &RawSymbol) -> bool {
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
