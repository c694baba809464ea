//! Unique symbol names for GNU gprof.

use kerntune_profile::Profile;
use std::collections::HashMap;

/// Returns the exported symbols with addresses in their names, because static functions share
/// names; and the name of each function of the profile.
pub fn unique(symbols: &str, profile: &Profile) -> (String, HashMap<usize, String>) {
    let mut by_place: HashMap<(u64, String), usize> = HashMap::new();
    let mut others: HashMap<String, usize> = HashMap::new();
    for symbol in &profile.tables.symbols {
        let name = symbol.name.replace(char::is_whitespace, "_");
        let at = symbol.function.get() as usize;
        match symbol.module.is_none() && symbol.size > 0 {
            true => by_place.insert((symbol.address.get(), name), at),
            false => others.insert(name, at),
        };
    }
    let mut names = HashMap::new();
    let mut text = String::new();
    for line in symbols.lines() {
        let (address, name) = line.split_once(" T ").unwrap();
        let place = (u64::from_str_radix(address, 16).unwrap(), name.to_string());
        let function = by_place.get(&place).or_else(|| others.get(name));
        let unique = if function.is_some() { format!("{name}@{address}") } else { name.to_string() };
        text += &format!("{address} T {unique}\n");
        function.map(|function| names.insert(*function, unique));
    }
    (text, names)
}
