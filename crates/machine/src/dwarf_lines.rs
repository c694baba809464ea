//! Maps source lines to instructions by the debug information of an ELF file.

use crate::selection::suggestions;
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::Symbols;
use std::collections::BTreeMap;
use std::path::Path;

/// Reason why a source line has no code.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
// Messages document the variants.
#[allow(missing_docs)]
pub enum LineError {
    #[error("this kernel has no debug information, so its source lines are not known; build one with `kerntune kernel build --set CONFIG_DEBUG_INFO_NONE=n --set CONFIG_DEBUG_INFO_DWARF5=y`, or name an instruction as SYMBOL+OFFSET")]
    NoDebugInfo,
    #[error("no code of this kernel is from a file `{file}`{hint}")]
    File { file: String, hint: String },
    #[error("line {line} of {file} has no code of its own; near it lines {} have", list(.nearest))]
    Line { file: String, line: u64, nearest: Vec<u64> },
    #[error("the debug information cannot be read: {0}")]
    Damaged(String),
}

fn list(lines: &[u64]) -> String {
    lines.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

impl From<kerntune_debuginfo::Error> for LineError {
    fn from(error: kerntune_debuginfo::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Returns where the code of a line begins: one address for each function that has some of it,
/// ascending.
///
/// `file` is a path from the top of the source tree, or the end of one.
pub fn addresses(elf: &Path, file: &str, line: u64, symbols: &Symbols) -> Result<Vec<u64>, LineError> {
    let bytes = MappedFile::open(elf).map_err(|e| LineError::Damaged(e.to_string()))?;
    addresses_in(&bytes, file, line, symbols)
}

/// Like [`addresses`], for an ELF file's contents.
pub(crate) fn addresses_in(
    elf: &[u8],
    file: &str,
    line: u64,
    symbols: &Symbols,
) -> Result<Vec<u64>, LineError> {
    let elf = Elf::parse(elf)?;
    if !elf.has_section(".debug_line") {
        return Err(LineError::NoDebugInfo);
    }
    let found = elf.debug_info()?.find_line(file, line)?;
    if !found.known {
        let hint = match suggestions(file, found.others.iter().map(String::as_str)).as_slice() {
            [] => String::new(),
            names => format!("; did you mean {}?", names.join(", ")),
        };
        return Err(LineError::File { file: file.into(), hint });
    }
    // Lowest address in each function, where the line's code begins.
    let mut first: BTreeMap<usize, u64> = BTreeMap::new();
    for &address in &found.addresses {
        if let Some(function) = symbols.lookup(address) {
            first.entry(symbols.whole(function)).or_insert(address);
        }
    }
    if first.is_empty() {
        let below = found.lines.range(..line).rev().take(2);
        let mut nearest: Vec<u64> = below.chain(found.lines.range(line..).take(2)).copied().collect();
        nearest.sort_unstable();
        return Err(LineError::Line { file: file.into(), line, nearest });
    }
    let mut addresses: Vec<u64> = first.into_values().collect();
    addresses.sort_unstable();
    Ok(addresses)
}
