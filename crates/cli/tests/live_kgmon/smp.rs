//! A guest with several CPUs. The expected counts are known from its work.

use kerntune_kgmon::KgmonDump;
use std::collections::BTreeMap;

/// Returns functions of the kernel and its modules by name, from `/proc/kallsyms`: the first of
/// each name, with its end.
pub fn places(kallsyms: &str) -> BTreeMap<String, (u64, u64)> {
    let mut symbols: Vec<(u64, &str)> = kallsyms
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            matches!(words.next()?, "t" | "T").then_some((address, words.next()?))
        })
        .collect();
    symbols.sort_unstable();
    let mut places = BTreeMap::new();
    for (at, &(address, name)) in symbols.iter().enumerate() {
        let end = symbols[at..].iter().map(|next| next.0).find(|&next| next > address);
        places.entry(name.to_string()).or_insert((address, end.unwrap_or(address + 4096)));
    }
    places
}

/// Returns the calls of a function, by all callers or by one.
pub fn calls(
    dump: &KgmonDump,
    places: &BTreeMap<String, (u64, u64)>,
    caller: Option<&str>,
    callee: &str,
) -> u64 {
    let within = |address: u64, name: &str| {
        let (start, end) = places[name];
        (start..end).contains(&address)
    };
    let arcs = dump.arcs.iter().filter(|arc| within(arc.callee, callee));
    arcs.filter(|arc| caller.is_none_or(|caller| within(arc.caller - 1, caller))).map(|arc| arc.calls).sum()
}
