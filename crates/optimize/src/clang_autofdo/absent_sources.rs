//! Part of another kernel's profile that belongs to source files which this kernel lacks.

use super::ExecutedFunction;
use crate::share::share;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most files named.
const MAX_NAMED: usize = 20;

/// Counts of another kernel's profile in source files that this kernel is not built from, mostly of
/// the other architecture. Functions without a known file count as present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbsentSources {
    /// Id of the kernel that was recorded.
    pub recorded: String,
    /// C functions of these files that ran and are in the profile.
    pub functions: u64,
    /// Executed bytes of all functions of these files, assembly included.
    pub bytes: u64,
    /// Executed bytes of all functions.
    pub of_bytes: u64,
    /// Names of these files, by executed bytes, most first; 20 at most.
    pub files: Vec<String>,
}

impl AbsentSources {
    /// Compares what ran on kernel `recorded` with the source files of another kernel, `there`.
    pub(super) fn of(recorded: &str, ran: &[ExecutedFunction], there: &BTreeSet<String>) -> Self {
        let absent = |file: &str| !there.is_empty() && !there.contains(file);
        let mut files: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut functions, mut bytes, mut of_bytes) = (0, 0u64, 0u64);
        for function in ran {
            of_bytes = of_bytes.saturating_add(function.bytes);
            let Some(file) = function.file.as_deref().filter(|file| absent(file)) else { continue };
            let of_file = files.entry(file).or_default();
            *of_file = of_file.saturating_add(function.bytes);
            bytes = bytes.saturating_add(function.bytes);
            functions += u64::from(function.is_c() && function.in_profile.is_some());
        }
        let mut files: Vec<(&str, u64)> = files.into_iter().collect();
        files.sort_by_key(|(name, bytes)| (std::cmp::Reverse(*bytes), *name));
        let files = files.into_iter().take(MAX_NAMED).map(|(name, _)| name.to_string()).collect();
        Self { recorded: recorded.to_string(), functions, bytes, of_bytes, files }
    }

    /// Returns the share of the executed bytes that belong to these files, 0 to 1.
    pub fn share(&self) -> f64 {
        share(self.bytes, self.of_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_kernel_does_not_have_are_counted_and_named() {
        let ran = |name: &str, file: Option<&str>, bytes, in_profile| ExecutedFunction {
            name: name.into(),
            file: file.map(str::to_string),
            module: None,
            bytes,
            in_profile,
            hot: false,
        };
        let ran = [
            ran("sort", Some("lib/sort.c"), 60, Some(60)),
            ran("fault", Some("arch/x86/mm/fault.c"), 20, Some(18)),
            ran("entry", Some("arch/x86/entry/entry_64.S"), 30, None),
            ran("unknown", None, 10, Some(10)),
        ];
        let nothing_known = AbsentSources::of("k1", &ran, &BTreeSet::new());
        assert_eq!((nothing_known.functions, nothing_known.bytes), (0, 0));
        let there = ["lib/sort.c", "fs/read_write.c"].map(str::to_string).into();
        let elsewhere = AbsentSources::of("k1", &ran, &there);
        assert_eq!((elsewhere.functions, elsewhere.bytes, elsewhere.of_bytes), (1, 50, 120));
        assert_eq!(elsewhere.files, ["arch/x86/entry/entry_64.S", "arch/x86/mm/fault.c"]);
    }
}
