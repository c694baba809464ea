//! Inlined functions, from DWARF's inlined subroutines.

use crate::dwarf::{in_section, name_of, target, DebugInfo, Entry, Slice};
use crate::Result;
use gimli::{Dwarf, Unit};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name of a function, or offset of the entry that has it.
enum FunctionName {
    Here(String),
    At(usize),
}

impl DebugInfo<'_> {
    /// Returns for each function, by its name in the source, the functions inlined in it, at any
    /// depth. Line tables with inlined calls are enough (`-gmlt`, `-g1` of Clang).
    ///
    /// # Errors
    /// Damaged debug information.
    pub fn inlined(&self) -> Result<BTreeMap<String, BTreeSet<String>>> {
        let dwarf = &self.dwarf();
        // Key: offset in the section. With LTO a function's name may be in another unit.
        let mut names: HashMap<usize, FunctionName> = HashMap::new();
        // Offsets of a function and of a function inlined in it.
        let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            let mut entries = unit.entries();
            // Depth and offset of the enclosing functions.
            let mut open: Vec<(isize, usize)> = Vec::new();
            let mut depth = 0;
            while let Some((down, entry)) = entries.next_dfs()? {
                depth += down;
                while open.last().is_some_and(|(at, _)| *at >= depth) {
                    open.pop();
                }
                let Some(here) = in_section(&unit, entry.offset()) else { continue };
                match entry.tag() {
                    gimli::DW_TAG_subprogram => {
                        if let Some(name) = function_name(dwarf, &unit, entry)? {
                            names.insert(here, name);
                        }
                        // Abstract instances have no code; their contents are repeated where the code
                        // is.
                        let has_code = entry.attr_value(gimli::DW_AT_low_pc)?.is_some()
                            || entry.attr_value(gimli::DW_AT_ranges)?.is_some();
                        if has_code {
                            open.push((depth, here));
                        }
                    }
                    gimli::DW_TAG_inlined_subroutine => {
                        let callee = target(&unit, entry.attr_value(gimli::DW_AT_abstract_origin)?);
                        if let (Some((_, function)), Some(callee)) = (open.last(), callee) {
                            pairs.insert((*function, callee));
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for at in names.keys() {
            if let Some(name) = resolve(&names, *at) {
                found.entry(name.to_string()).or_default();
            }
        }
        for (function, callee) in pairs {
            if let (Some(function), Some(callee)) = (resolve(&names, function), resolve(&names, callee)) {
                found.entry(function.to_string()).or_default().insert(callee.to_string());
            }
        }
        Ok(found)
    }
}

fn function_name<'a>(
    dwarf: &Dwarf<Slice<'a>>,
    unit: &Unit<Slice<'a>>,
    entry: &Entry<'a, '_>,
) -> gimli::Result<Option<FunctionName>> {
    if let Some(name) = name_of(dwarf, unit, entry)? {
        return Ok(Some(FunctionName::Here(name.into_owned())));
    }
    let origin = match entry.attr_value(gimli::DW_AT_abstract_origin)? {
        None => entry.attr_value(gimli::DW_AT_specification)?,
        origin => origin,
    };
    Ok(target(unit, origin).map(FunctionName::At))
}

/// Returns the name at an offset, following references.
fn resolve(names: &HashMap<usize, FunctionName>, mut at: usize) -> Option<&str> {
    const REFERENCES: usize = 4;
    for _ in 0..REFERENCES {
        match names.get(&at)? {
            FunctionName::Here(name) => return Some(name),
            FunctionName::At(next) => at = *next,
        }
    }
    None
}
