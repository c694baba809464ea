//! Lookup of functions by name.

use crate::pattern::is_of_set;
use crate::{Error, Result};
use kerntune_profile::{FunctionIndex, Symbol, Tables};
use kerntune_table::printable;
use std::collections::HashSet;

/// Failed lookup of a function: no match, or several.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// No function has the name.
    #[error("the profile has no function \"{name}\"{}", offer(.near))]
    Unknown {
        /// Name as given.
        name: String,
        /// Names with a similar spelling.
        near: Vec<String>,
    },
    /// Several functions share the name.
    #[error("{} functions are called \"{name}\": choose one with {}", .which.len(), .which.join(", "))]
    Several {
        /// Name as given.
        name: String,
        /// Unambiguous names of the candidates.
        which: Vec<String>,
    },
}

fn offer(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// Finds the function that `wanted` names: `name`; where several share it, `name@file` (the end of
/// the path of its source file or user binary) or `name@0xaddress`. A name under which only one
/// function ran means that function.
pub fn function(tables: &Tables, wanted: &str) -> Result<FunctionIndex, NameError> {
    let (name, place) = match wanted.split_once('@') {
        Some((name, place)) => (name, Some(place)),
        None => (wanted, None),
    };
    let named = || tables.symbols.iter().filter(|symbol| symbol.name == name);
    let mut found: Vec<&Symbol> =
        named().filter(|symbol| place.is_none_or(|place| is_at(symbol, place))).collect();
    if found.len() > 1 {
        let ran = |symbol: &&Symbol| tables.functions.iter().any(|row| row.function == symbol.function);
        let those: Vec<&Symbol> = found.iter().copied().filter(ran).collect();
        if !those.is_empty() {
            found = those;
        }
    }
    match found.as_slice() {
        [one] => Ok(one.function),
        [] if named().next().is_some() => several(name, &named().collect::<Vec<_>>()),
        [] => Err(NameError::Unknown { name: printable(wanted), near: similar(tables, name) }),
        many => several(name, many),
    }
}

/// Finds the functions of sets: names, patterns with `*` and `?`, directories or files of the
/// source.
pub(crate) fn chosen(tables: &Tables, sets: &[String]) -> Result<HashSet<FunctionIndex>> {
    let mut all = HashSet::new();
    for set in sets {
        let before = all.len();
        all.extend(
            tables.symbols.iter().filter(|symbol| is_of_set(symbol, set)).map(|symbol| symbol.function),
        );
        let any = all.len() > before || tables.symbols.iter().any(|symbol| is_of_set(symbol, set));
        if !any {
            return Err(none_of(tables, set));
        }
    }
    Ok(all)
}

/// Returns the error for a set without functions.
pub(crate) fn none_of(tables: &Tables, set: &str) -> Error {
    match set.contains(['*', '?', '/']) {
        true => Error::NoFunction { pattern: printable(set) },
        false => NameError::Unknown { name: printable(set), near: similar(tables, set) }.into(),
    }
}

/// Returns a function's name, with its module or binary if it is not of the kernel's image.
pub(crate) fn label(tables: &Tables, function: FunctionIndex) -> String {
    let name = printable(tables.name(function));
    let symbol = tables.symbols.get(function.get() as usize);
    match symbol.and_then(|symbol| symbol.module.as_deref()) {
        Some(module) => format!("{name} [{}]", printable(module.rsplit('/').next().unwrap_or(module))),
        None => name,
    }
}

fn several(name: &str, symbols: &[&Symbol]) -> Result<FunctionIndex, NameError> {
    let with = |place: &str| symbols.iter().filter(|symbol| is_at(symbol, place)).count();
    let which = |symbol: &&Symbol| {
        let place = symbol.place().filter(|place| with(place) == 1);
        printable(&format!("{name}@{}", place.map_or_else(|| symbol.address.to_string(), Into::into)))
    };
    Err(NameError::Several { name: printable(name), which: symbols.iter().map(which).collect() })
}

fn is_at(symbol: &Symbol, place: &str) -> bool {
    let ends = |path: &Option<String>| path.as_deref().is_some_and(|path| path.ends_with(place));
    !place.is_empty() && (ends(&symbol.file) || ends(&symbol.module) || symbol.address.to_string() == place)
}

/// Returns up to five names that begin the same, contain `wanted`, or differ in few letters;
/// functions that ran come first.
fn similar(tables: &Tables, wanted: &str) -> Vec<String> {
    let mut ran = vec![false; tables.symbols.len()];
    for row in &tables.functions {
        if let Some(ran) = ran.get_mut(row.function.0 as usize) {
            *ran = true;
        }
    }
    let rank = |symbol| rank(symbol, wanted, &ran);
    let mut all: Vec<_> = tables.symbols.iter().filter_map(rank).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().take(5).map(|(_, name)| printable(name)).collect()
}

/// Ranks a function's name by similarity, lowest is best; `None` if it is not similar.
fn rank<'a>(symbol: &'a Symbol, wanted: &str, ran: &[bool]) -> Option<(i64, &'a str)> {
    let name = symbol.name.as_str();
    let alike = strsim::jaro_winkler(name, wanted);
    let part = wanted.len() >= 4 && name.contains(wanted);
    (part || alike >= 0.88).then(|| {
        let ran = ran.get(symbol.function.0 as usize).copied().unwrap_or(false);
        let score = alike + if part { 0.3 } else { 0.0 } + if ran { 0.2 } else { 0.0 };
        ((-score * 1e6) as i64, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::Address;

    fn tables() -> Tables {
        let symbol = |(at, (name, file)): (usize, &(&str, Option<&str>))| Symbol {
            function: FunctionIndex(at as u32),
            name: name.to_string(),
            address: Address(0x1000 + at as u64),
            size: 1,
            file: file.map(Into::into),
            module: None,
        };
        let all = [
            ("tcp_sendmsg", Some("net/ipv4/tcp.c")),
            ("tcp_sendmsg_locked", Some("net/ipv4/tcp.c")),
            ("cleanup", Some("net/unix/garbage.c")),
            ("cleanup", Some("fs/pipe.c")),
            ("cleanup", None),
        ];
        Tables { symbols: all.iter().enumerate().map(symbol).collect(), ..Tables::default() }
    }

    #[test]
    fn exact_names_and_places() {
        let find = |name| function(&tables(), name).map(|function| function.0);
        assert_eq!(find("tcp_sendmsg"), Ok(0));
        assert_eq!(
            [find("cleanup@fs/pipe.c"), find("cleanup@pipe.c"), find("cleanup@0x1004")],
            [Ok(3), Ok(3), Ok(4)]
        );
        assert_eq!(
            find("cleanup").unwrap_err().to_string(),
            "3 functions are called \"cleanup\": choose one with cleanup@net/unix/garbage.c, cleanup@fs/pipe.c, \
             cleanup@0x1004"
        );
        assert!(matches!(find("cleanup@mm/slub.c"), Err(NameError::Several { .. })));
    }

    #[test]
    fn near_names_are_offered() {
        let error = |name| function(&tables(), name).unwrap_err().to_string();
        assert_eq!(
            error("tcp_sendmesg"),
            "the profile has no function \"tcp_sendmesg\"; did you mean tcp_sendmsg, tcp_sendmsg_locked?"
        );
        assert_eq!(error("xyz"), "the profile has no function \"xyz\"");
    }
}
