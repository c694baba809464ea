//! Source map of a kernel whose functions were moved.

use crate::vmlinux::source_map::{SourceMap, FILE};
use crate::vmlinux::symbols::KernelFunction;
use crate::{Kernel, Result, Symbols};
use kerntune_work::{write_atomic, IoContext};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// Writes the source map of a kernel that has the functions of `of` at other addresses, if `of` has
/// one. `linked` are its symbols, and `dir` is its directory.
///
/// # Errors
/// Files that cannot be read or written; a damaged source map.
pub(crate) fn transfer(of: &Kernel, linked: &Symbols, dir: &Path) -> Result<()> {
    let from = of.dir.join(FILE);
    if !from.is_file() {
        return Ok(());
    }
    let text = fs::read_to_string(&from).at("read", &from)?;
    let moved = moved(
        &SourceMap::parse(&text, &of.dir)?,
        Symbols::load(&of.vmlinux())?.functions(),
        linked.functions(),
    );
    write_atomic(&dir.join(FILE), moved.text().as_bytes())?;
    Ok(())
}

/// Maps the same functions to other addresses. Functions of one name and size are taken to be from
/// one file; if they are not, the file is unknown.
fn moved(sources: &SourceMap, from: &[KernelFunction], to: &[KernelFunction]) -> SourceMap {
    let mut named: HashMap<(&str, u64), Option<&str>> = HashMap::new();
    for function in from {
        let path = sources.path(function.address);
        let known = named.entry((&function.name, function.size)).or_insert(path);
        *known = known.filter(|known| Some(*known) == path);
    }
    // Padding counts for the function before it, so a size may differ.
    let mut by_name: HashMap<&str, Option<&str>> = HashMap::new();
    for ((name, _), path) in &named {
        let known = by_name.entry(name).or_insert(*path);
        *known = known.filter(|known| Some(*known) == *path);
    }
    let mut ranges = BTreeMap::new();
    let mut last: Option<Option<&str>> = None;
    for function in to {
        let exact = named.get(&(function.name.as_str(), function.size)).copied().flatten();
        let path = exact.or_else(|| by_name.get(function.name.as_str()).copied().flatten());
        if last != Some(path) && !ranges.contains_key(&function.address) {
            ranges.insert(function.address, path.map(Into::into));
            last = Some(path);
        }
    }
    SourceMap { ranges }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmlinux::source_map::HEADER;

    #[test]
    fn functions_take_their_files_with_them() {
        let function = |name: &str, address, size| KernelFunction {
            name: name.into(),
            address,
            size,
            ..Default::default()
        };
        let text = format!("{HEADER}\n100\tnet/a.c\n200\tnet/b.c\n300\tnet/c.c\n");
        let sources = SourceMap::parse(&text, Path::new("k")).unwrap();
        let from = [
            function("first", 0x100, 0x20),
            function("twice", 0x120, 0x10),
            function("second", 0x200, 0x20),
            function("twice", 0x220, 0x30),
            function("same", 0x240, 0x10),
            function("same", 0x300, 0x10),
        ];
        let to = [
            function("same", 0x1000, 0x10),
            function("twice", 0x1100, 0x30),
            function("second", 0x1200, 0x28), // with other bytes between it and the next
            function("new", 0x1300, 0x10),
            function("first", 0x1400, 0x20),
            function("twice", 0x1500, 0x10),
            function("twice", 0x1600, 0x14),
        ];
        let after = moved(&sources, &from, &to);
        let paths: Vec<_> = to.iter().map(|function| after.path(function.address)).collect();
        let (a, b) = (Some("net/a.c"), Some("net/b.c"));
        // Functions of one name are told apart by size, or not at all.
        assert_eq!(paths, [None, b, b, None, a, a, None]);
    }
}
