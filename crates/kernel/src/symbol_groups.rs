//! Symbols by address: aliases together, labels and marks left out, every size known.

use crate::raw_symbols::{CodeSection, Raw};
use std::collections::HashMap;

/// The symbols at one address; the first is the one that names it.
pub(crate) struct Group {
    pub symbols: Vec<Raw>,
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
}

/// Merges aliases, drops marks and inner labels, completes sizes; sorted by address.
pub(crate) fn group(mut raw: Vec<Raw>, sections: &HashMap<usize, CodeSection>) -> Vec<Group> {
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
