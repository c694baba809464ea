//! Source file of each symbol of a linked kernel, found by comparison with the objects.
//!
//! A linker keeps names, sizes, binding and, within one name, the order of local symbols; this
//! settles nearly all. A symbol that stays ambiguous gets no path.

use crate::vmlinux::objects::LinkedObject;
use crate::vmlinux::raw_symbols::RawSymbol;
use std::collections::HashMap;

/// Binding of local symbols in [`RawSymbol`].
const LOCAL: u8 = 2;

/// Symbol of an object, and the index of the object.
type Definition<'a> = (&'a RawSymbol, usize);

/// Returns the object of each of the kernel's symbols, in the order of its symbol table.
pub(crate) fn locate<'a>(kernel: &[RawSymbol], objects: &'a [LinkedObject]) -> Vec<Option<&'a LinkedObject>> {
    let mut definitions: HashMap<&str, Vec<Definition>> = HashMap::new();
    for (number, object) in objects.iter().enumerate() {
        for symbol in &object.symbols {
            definitions.entry(&symbol.name).or_default().push((symbol, number));
        }
    }
    let mut found = vec![None; kernel.len()];
    let mut locals: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, symbol) in kernel.iter().enumerate() {
        let Some(all) = definitions.get(symbol.name.as_str()) else { continue };
        if symbol.binding != LOCAL {
            found[index] = global(symbol, all);
        } else if let Some(number) = only(all.iter().map(|(_, number)| *number), objects) {
            found[index] = Some(number);
        } else {
            locals.entry(&symbol.name).or_default().push(index);
        }
    }
    for (name, indices) in locals {
        let candidates: Vec<Definition> = definitions
            .get(name)
            .into_iter()
            .flatten()
            .filter(|(d, _)| d.binding == LOCAL)
            .copied()
            .collect();
        for (index, number) in pair(kernel, &indices, &candidates, objects) {
            found[index] = Some(number);
        }
    }
    found.into_iter().map(|number| number.and_then(|number| objects.get(number))).collect()
}

/// Finds the object of a global or weak symbol. Of several weak definitions the linker takes the
/// first.
fn global(symbol: &RawSymbol, all: &[Definition]) -> Option<usize> {
    let mut same = all.iter().filter(|(d, _)| d.binding == symbol.binding);
    let first = same.next();
    let exact = all.iter().find(|(d, _)| d.binding == symbol.binding && d.size == symbol.size);
    // A strong symbol is defined twice only if one definition is in a library and was not linked.
    exact.or(first).map(|(_, number)| *number)
}

/// Returns the first object if all of them have the same source file. Several objects may be
/// compiled from one source.
fn only(mut numbers: impl Iterator<Item = usize>, objects: &[LinkedObject]) -> Option<usize> {
    let first = numbers.next()?;
    let source = &objects.get(first)?.source;
    numbers.all(|number| objects.get(number).is_some_and(|o| o.source == *source)).then_some(first)
}

/// Pairs local symbols of one name with objects: by position if all definitions were linked,
/// otherwise by size and file name.
fn pair(
    kernel: &[RawSymbol],
    indices: &[usize],
    candidates: &[Definition],
    objects: &[LinkedObject],
) -> Vec<(usize, usize)> {
    let fits = |index: usize, definition: &RawSymbol| {
        let symbol = &kernel[index];
        // An object without a file symbol is assembly; its symbols follow another object's file
        // symbol.
        let file = file(definition).is_none() || file(definition) == file(symbol);
        file && definition.size == symbol.size
    };
    let zip = |indices: &[usize], candidates: &[Definition]| {
        (indices.len() == candidates.len()
            && indices.iter().zip(candidates).all(|(index, (definition, _))| fits(*index, definition)))
        .then(|| indices.iter().copied().zip(candidates.iter().map(|(_, number)| *number)).collect())
    };
    if let Some(pairs) = zip(indices, candidates) {
        return pairs;
    }
    let mut pairs = Vec::new();
    for index in indices {
        let fitting: Vec<Definition> = candidates.iter().filter(|(d, _)| fits(*index, d)).copied().collect();
        let alike: Vec<usize> = indices
            .iter()
            .filter(|other| {
                kernel[**other].size == kernel[*index].size && file(&kernel[**other]) == file(&kernel[*index])
            })
            .copied()
            .collect();
        let by_position: Option<Vec<(usize, usize)>> = zip(&alike, &fitting);
        let number = match by_position {
            Some(alike) => alike.into_iter().find(|(i, _)| i == index).map(|(_, number)| number),
            None => only(fitting.iter().map(|(_, number)| *number), objects),
        };
        pairs.extend(number.map(|number| (*index, number)));
    }
    pairs
}

fn file(symbol: &RawSymbol) -> Option<&str> {
    symbol.scope.as_ref().map(|(_, name)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `name size`, with `file:` before it for a local symbol and `?` for a weak one.
    fn symbol(text: &str) -> RawSymbol {
        let (scope, rest) = match text.split_once(':') {
            Some((file, rest)) => (Some((0, file.to_string())), rest),
            None => (None, text),
        };
        let (name, size) = rest.split_once(' ').unwrap();
        let binding = if scope.is_some() { LOCAL } else { u8::from(name.ends_with('?')) };
        RawSymbol {
            name: name.trim_end_matches('?').to_string(),
            address: 0,
            size: size.parse().unwrap(),
            section: 1,
            typed: true,
            binding,
            scope: scope.filter(|(_, file)| !file.is_empty()),
        }
    }

    fn located(objects: &[(&str, &[&str])], kernel: &[&str]) -> Vec<String> {
        let objects: Vec<LinkedObject> = objects
            .iter()
            .map(|(source, symbols)| LinkedObject {
                source: source.to_string(),
                symbols: symbols.iter().map(|s| symbol(s)).collect(),
            })
            .collect();
        let kernel: Vec<RawSymbol> = kernel.iter().map(|s| symbol(s)).collect();
        let found = locate(&kernel, &objects);
        found.into_iter().map(|object| object.map_or("-".into(), |o| o.source.clone())).collect()
    }

    #[test]
    fn static_functions_of_one_name_are_told_apart_by_order() {
        let objects: &[(&str, &[&str])] = &[
            ("fs/a/inode.c", &["inode.c:s_show 9", "inode.c:only 4"]),
            ("fs/b/inode.c", &["inode.c:s_show 9"]),
            ("net/proc.c", &["proc.c:s_show 12"]),
        ];
        let kernel = ["inode.c:s_show 9", "inode.c:only 4", "inode.c:s_show 9", "proc.c:s_show 12"];
        assert_eq!(located(objects, &kernel), ["fs/a/inode.c", "fs/a/inode.c", "fs/b/inode.c", "net/proc.c"]);
    }

    #[test]
    fn where_some_were_left_out_size_and_file_decide_and_nothing_is_guessed() {
        let objects: &[(&str, &[&str])] = &[
            ("fs/a/inode.c", &["inode.c:init 9"]),
            ("fs/b/inode.c", &["inode.c:init 9"]),
            ("lib/left-out.c", &["left-out.c:init 3"]),
            ("net/proc.c", &["proc.c:init 9"]),
        ];
        // Four objects define it and the kernel has two: which inode.c it came from is ambiguous.
        assert_eq!(located(objects, &["inode.c:init 9", "proc.c:init 9"]), ["-", "net/proc.c"]);
        // Both definitions of that kind are there: paired by order, although a third is missing.
        let three = ["inode.c:init 9", "inode.c:init 9", "proc.c:init 9"];
        assert_eq!(located(objects, &three), ["fs/a/inode.c", "fs/b/inode.c", "net/proc.c"]);
    }

    #[test]
    fn weak_definitions_yield_and_assembly_has_no_file() {
        let objects: &[(&str, &[&str])] = &[
            ("kernel/x.c", &["arch_init? 5", "late? 1"]),
            ("kernel/y.c", &["late? 1"]),
            ("arch/x86/x.c", &["arch_init 7"]),
            ("arch/x86/lib/copy.S", &[":.Lcopy 3", ":helper 8"]),
            ("lib/helper.c", &["helper.c:helper 8"]),
        ];
        let kernel = ["arch_init 7", "late? 1", "gone 2"];
        assert_eq!(located(objects, &kernel), ["arch/x86/x.c", "kernel/x.c", "-"]);
        // Assembly gets the file symbol of the object before it.
        assert_eq!(
            located(objects, &["other.c:helper 8", "helper.c:helper 8"]),
            ["arch/x86/lib/copy.S", "lib/helper.c"]
        );
    }

    #[test]
    fn no_objects_no_paths() {
        assert_eq!(located(&[], &["a 1", "x.c:b 2"]), ["-", "-"]);
    }
}
