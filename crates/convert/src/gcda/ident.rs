//! Idents and checksums by which GCC finds the counters of a function.
//!
//! Defined by GCC's `gcc/coverage.cc` (`coverage_compute_profile_id`,
//! `coverage_compute_lineno_checksum`) and `crc32_byte` of `gcc/tree.cc`. A function that other
//! objects can call is found by its name alone. Any other is found by its name, the name of its
//! source file as the compiler was given it, and the name of its object.

use super::{Gcda, GcdaFunction};
use std::collections::HashSet;

/// Bits of an ident; formats of GCC keep the highest one free.
const IDENT: u32 = 0x7fff_ffff;
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// Inputs of a function's ident and checksum, as GCC computes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSite<'a> {
    /// Assembler name.
    pub name: &'a str,
    /// Source file, as the compiler was given it.
    pub file: &'a str,
    /// Line of the declaration, from 1.
    pub line: u32,
    /// Path of the object without its ending, as the compiler was given it: `kernel/fork`.
    pub object: &'a str,
}

impl FunctionSite<'_> {
    /// Returns the ident of a function that other objects can call.
    pub fn public_ident(&self) -> u32 {
        ident(checksum(0, self.name))
    }

    /// Returns the ident of a function of one object.
    pub fn local_ident(&self) -> u32 {
        ident(checksum(checksum(checksum(0, self.file), self.name), self.object))
    }

    /// Returns the checksum of name and position.
    pub fn lineno_checksum(&self) -> u32 {
        checksum(checksum(self.line, self.file), self.name)
    }
}

/// Counters of an object for builds that name its sources differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedCounters {
    /// The counters: local functions once for each name of their source file.
    pub gcda: Gcda,
    /// Functions whose ident is neither that of a public nor that of a local function: they are as
    /// they were.
    pub kept: u64,
}

impl Gcda {
    /// Renames the source files of the functions. `site` returns a function's own site by ident;
    /// `names` returns all names of a source file, the main one first.
    pub fn renamed<'a>(
        &self,
        site: impl Fn(u32) -> Option<FunctionSite<'a>>,
        names: impl Fn(&str) -> Vec<String>,
    ) -> RenamedCounters {
        let mut renamed = RenamedCounters { gcda: Self { functions: Vec::new(), ..self.clone() }, kept: 0 };
        let mut used: HashSet<u32> = HashSet::new();
        for function in self.functions.iter().filter(|function| !function.is_absent()) {
            let mut add = |ident: u32, lineno_checksum: u32| {
                if used.insert(ident) {
                    let function = GcdaFunction { ident, lineno_checksum, ..function.clone() };
                    renamed.gcda.functions.push(function);
                }
            };
            let own = site(function.ident);
            match own {
                Some(site) if function.ident == site.public_ident() => {
                    let names = names(site.file);
                    let main = FunctionSite { file: names.first().map_or(site.file, String::as_str), ..site };
                    add(function.ident, main.lineno_checksum());
                }
                Some(site) if function.ident == site.local_ident() => {
                    for name in names(site.file) {
                        let site = FunctionSite { file: &name, ..site };
                        add(site.local_ident(), site.lineno_checksum());
                    }
                }
                _ => {
                    renamed.kept += 1;
                    add(function.ident, function.lineno_checksum);
                }
            }
        }
        renamed
    }
}

fn ident(checksum: u32) -> u32 {
    match checksum & IDENT {
        0 => 1,
        ident => ident,
    }
}

/// Extends a checksum by a text and its final NUL.
fn checksum(start: u32, text: &str) -> u32 {
    text.bytes().chain([0]).fold(start, |sum, byte| {
        let sum = sum ^ (u32::from(byte) << 24);
        (0..8).fold(sum, |sum, _| (sum << 1) ^ if sum >> 31 == 1 { POLYNOMIAL } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ByteOrder, GcovVersion};
    use super::*;

    const LOCAL: FunctionSite<'_> =
        FunctionSite { name: "unshare_fd", file: "../kernel/fork.c", line: 3297, object: "kernel/fork" };
    const PUBLIC: FunctionSite<'_> = FunctionSite { name: "kernel_clone", line: 2802, ..LOCAL };

    #[test]
    fn idents_are_those_of_gcc() {
        // `kernel/fork.gcno` of Linux 6.12.117 by GCC 12.2.
        assert_eq!((LOCAL.local_ident(), LOCAL.lineno_checksum()), (1_303_111_064, 33_184_116));
        assert_eq!((PUBLIC.public_ident(), PUBLIC.lineno_checksum()), (1_620_349_672, 1_622_492_357));
    }

    #[test]
    fn local_functions_get_an_ident_for_each_name() {
        let record =
            |ident| GcdaFunction { ident, lineno_checksum: 1, cfg_checksum: 2, counters: Vec::new() };
        let gcda = Gcda {
            byte_order: ByteOrder::Little,
            version: GcovVersion(0x4232_322a),
            stamp: 0,
            checksum: 0,
            summary: None,
            functions: vec![record(LOCAL.local_ident()), record(PUBLIC.public_ident()), record(77)],
            end_marker: false,
        };
        let site = |ident: u32| match ident {
            77 => None,
            ident if ident == LOCAL.local_ident() => Some(LOCAL),
            _ => Some(PUBLIC),
        };
        let names = |_: &str| vec!["kernel/fork.c".to_string(), "/src/kernel/fork.c".to_string()];
        let renamed = gcda.renamed(site, names);
        assert_eq!((renamed.gcda.functions.len(), renamed.kept), (4, 1));
        let found: Vec<u32> = renamed.gcda.functions.iter().map(|function| function.ident).collect();
        let local = |file| FunctionSite { file, ..LOCAL }.local_ident();
        assert_eq!(found, [local("kernel/fork.c"), local("/src/kernel/fork.c"), PUBLIC.public_ident(), 77]);
        let moved = FunctionSite { file: "kernel/fork.c", ..PUBLIC };
        assert_eq!(renamed.gcda.functions[2].lineno_checksum, moved.lineno_checksum());
        assert_eq!(Gcda::parse(&renamed.gcda.to_bytes()).unwrap(), renamed.gcda);
    }
}
