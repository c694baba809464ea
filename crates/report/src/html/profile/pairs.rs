//! Pairing of the functions of two profiles: the second document gets the numbers of the first.

use super::data::{PageDocument, SecondProfile};
use super::numbers::{code, StringTable, NONE};
use kerntune_profile::source_name;
use std::collections::{HashMap, HashSet};

/// Name, source file and module of a function; empty where there is none.
type SourcePlace<'a> = [&'a str; 3];

/// Keys from strict to loose: kernels may disagree on the source file, and one may have a copy or a
/// part of the function.
fn loose_keys([name, file, module]: SourcePlace) -> [SourcePlace; 3] {
    let (source, base) = (source_name(name).0, file.rsplit('/').next().unwrap_or(file));
    [[name, "", module], [source, base, module], [source, "", module]]
}

/// Numbers of the second profile's functions, and which of them were added to the first's.
struct FunctionPairs {
    numbers: Vec<usize>,
    added: Vec<usize>,
}

/// Pairs functions of the same name, source and module, or else by the first looser key that only
/// one function of the first profile has, and whose name only one of the second has.
fn pairs(first: &[SourcePlace], second: &[SourcePlace]) -> FunctionPairs {
    let mut known: HashMap<SourcePlace, usize> = first.iter().copied().zip(0..).collect();
    // By looser key: the only function, and whether its name is one in the source. Such a one means
    // the function itself and goes before copies and parts.
    let mut alone: [HashMap<SourcePlace, (Option<usize>, bool)>; 3] = Default::default();
    for (at, place) in first.iter().enumerate() {
        let is_source = source_name(place[0]).0 == place[0];
        for (found, key) in alone.iter_mut().zip(loose_keys(*place)) {
            match found.get_mut(&key) {
                Some((_, true)) if !is_source => {}
                Some((only, of_source)) if *of_source == is_source => *only = None,
                _ => {
                    found.insert(key, (Some(at), is_source));
                }
            }
        }
    }
    let (mut once, mut several) = (HashSet::new(), HashSet::new());
    for place in second {
        let [key, ..] = loose_keys(*place);
        if !once.insert(key) {
            several.insert(key);
        }
    }
    let near = |place: SourcePlace| -> Option<usize> {
        let keys = loose_keys(place);
        let is_unique = !several.contains(&keys[0]);
        alone.iter().zip(keys).filter(|_| is_unique).find_map(|(found, key)| found.get(&key)?.0)
    };
    let (mut numbers, mut added) = (Vec::with_capacity(second.len()), Vec::new());
    for (at, place) in second.iter().enumerate() {
        let number = known.get(place).copied().or_else(|| near(*place)).unwrap_or_else(|| {
            added.push(at);
            first.len() + added.len() - 1
        });
        // Later functions of the same place are the same one, even if it is new.
        known.entry(*place).or_insert(number);
        numbers.push(number);
    }
    FunctionPairs { numbers, added }
}

fn places(document: &PageDocument) -> Vec<SourcePlace<'_>> {
    document.names.iter().enumerate().map(|(f, name)| place(document, f, name)).collect()
}

fn place<'a>(document: &'a PageDocument, f: usize, name: &'a str) -> SourcePlace<'a> {
    let row = |column: &[i64]| column.get(f).and_then(|at| usize::try_from(*at).ok());
    let file = row(&document.file).and_then(|at| document.files.get(at));
    let module = row(&document.module).and_then(|at| document.modules.get(at));
    [name, file.map_or("", String::as_str), module.map_or("", String::as_str)]
}

/// Renumbers the second document; functions and threads that only it has are added to the first.
pub(super) fn paired(first: &mut PageDocument, mut second: PageDocument) -> SecondProfile {
    let loaded: Vec<String> =
        second.loaded.iter().filter_map(|at| second.modules.get(*at)).cloned().collect();
    let second_places = places(&second);
    let FunctionPairs { numbers, added } = pairs(&places(first), &second_places);
    let (mut files, mut modules) = (table(&mut first.files), table(&mut first.modules));
    let number =
        |strings: &mut StringTable, text: &str| if text.is_empty() { NONE } else { strings.at(text) };
    for [name, file, module] in added.iter().filter_map(|at| second_places.get(*at)) {
        first.names.push((*name).to_owned());
        first.file.push(number(&mut files, file));
        first.module.push(number(&mut modules, module));
    }
    let mut comms = table(&mut first.comms);
    let threads: Vec<i64> = second.comms.iter().map(|comm| comms.at(comm)).collect();
    first.loaded.extend(loaded.iter().map(|name| modules.at(name) as usize));
    (first.files, first.modules, first.comms) = (files.all, modules.all, comms.all);
    let renumber = |of: &mut i64| {
        let place = usize::try_from(if *of >= 0 { *of } else { code::THREAD - *of });
        *of = match place {
            Ok(at) if *of >= 0 => numbers.get(at).map_or(NONE, |number| *number as i64),
            Ok(at) => code::THREAD - threads.get(at).copied().unwrap_or_default(),
            Err(_) => *of,
        };
    };
    for group in &mut second.groups {
        group.codes().into_iter().flatten().for_each(renumber);
    }
    let PageDocument { label, operations, views, groups, .. } = second;
    SecondProfile { label, operations, views, groups }
}

fn table(all: &mut Vec<String>) -> StringTable {
    StringTable::of(std::mem::take(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_the_same_in_the_source_are_paired() {
        let places = |rows: &[(&'static str, &'static str)]| -> Vec<SourcePlace<'static>> {
            rows.iter().map(|&(name, file)| [name, file, ""]).collect()
        };
        let first = places(&[
            ("walk", "fs/namei.c"),
            ("send", "net/socket.c"),
            ("twice", "a.c"),
            ("twice", "b.c"),
            ("cut", "mm/cut.c"),
            ("cut.cold", "mm/cut.c"),
        ]);
        let second = places(&[
            ("walk", "namei.c"),
            ("send.llvm.123", ""),
            ("twice", "b.c"),
            ("twice", "c.c"),
            ("cut.part.0", "cut.c"),
            ("only", ""),
        ]);
        let FunctionPairs { numbers, added } = pairs(&first, &second);
        assert_eq!((numbers, added), (vec![0, 1, 3, 6, 4, 7], vec![3, 5]));
        // What Clang adds to a name counts as well.
        assert_eq!(pairs(&first, &places(&[("walk.specialized.1", "")])).numbers, [0]);
        // A module of its own is another function.
        assert_eq!(pairs(&first, &[["send", "net/socket.c", "a.ko"]]).added, [0]);
    }
}
