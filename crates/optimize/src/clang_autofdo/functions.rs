//! Executed functions, and their part in the sample profile.

use kerntune_convert::autofdo::SampleProfile;
use kerntune_kernel::module_name;
use kerntune_profile::{Symbol, Tables};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Share of all samples in hot places: LLVM's own threshold (`-profile-summary-cutoff-hot`).
pub(super) const HOT_SHARE: f64 = 0.99;

/// Function of the base kernel that ran in the training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFunction {
    /// Name in the symbol table.
    pub name: String,
    /// Source file, if known.
    pub file: Option<String>,
    /// Module that it is of; `None` for the kernel's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Executed bytes of its code.
    pub bytes: u64,
    /// Executed bytes that the sample profile has under this name, which static functions may
    /// share; `None` without an entry.
    pub in_profile: Option<u64>,
    /// True if one of its places is among those that hold 99 % of all samples.
    pub hot: bool,
}

impl ExecutedFunction {
    /// Checks whether the function is written in C, as far as is known. Counts of assembly code
    /// cannot be used.
    pub fn is_c(&self) -> bool {
        self.file.as_deref().is_none_or(|file| !file.ends_with(".S"))
    }
}

/// Returns the functions of the kernel's image, or of a module, with executed code, by executed
/// bytes, most first. A place is hot from so many samples on.
pub(super) fn ran(
    tables: &Tables,
    module: Option<&str>,
    (samples, hot_from): (&SampleProfile, u64),
) -> Vec<ExecutedFunction> {
    let is_there = |symbol: &&Symbol| match module {
        None => symbol.module.is_none(),
        Some(_) => symbol.loaded_module().map(module_name).as_deref() == module,
    };
    let mut symbols: Vec<&Symbol> =
        tables.symbols.iter().filter(is_there).filter(|symbol| symbol.size > 0).collect();
    symbols.sort_by_key(|symbol| symbol.address);
    let mut bytes = vec![0u64; symbols.len()];
    for block in &tables.blocks {
        let at = symbols.partition_point(|symbol| symbol.address <= block.start);
        let Some(at) = at.checked_sub(1) else { continue };
        if block.start.get() < symbols[at].address.get().saturating_add(symbols[at].size) {
            bytes[at] = bytes[at].saturating_add(block.bytes.saturating_mul(block.count));
        }
    }
    let by_name: HashMap<&str, _> = samples.functions.iter().map(|f| (f.name.as_str(), f)).collect();
    let mut ran: Vec<ExecutedFunction> = (symbols.iter().zip(bytes).filter(|(_, bytes)| *bytes > 0))
        .map(|(symbol, bytes)| {
            let found =
                by_name.get(canonical(&symbol.name)).filter(|found| found.places > 0 || found.inlined > 0);
            ExecutedFunction {
                name: symbol.name.clone(),
                file: symbol.file.clone(),
                module: module.map(str::to_owned),
                bytes,
                in_profile: found.map(|found| found.total),
                hot: found.is_some_and(|found| found.max >= hot_from),
            }
        })
        .collect();
    ran.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    ran
}

/// Returns LLVM's name for a function and its clones (`FunctionSamples::getCanonicalFnName`).
fn canonical(name: &str) -> &str {
    let end = [".llvm.", ".part.", ".__uniq."].iter().filter_map(|suffix| name.find(suffix)).min();
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_profile::{Address, Block, FunctionIndex, Instructions};

    #[test]
    fn what_ran_is_told_from_what_the_profile_has() {
        let symbol = |number: u32, name: &str, file: &str| Symbol {
            function: FunctionIndex(number),
            name: name.into(),
            address: Address(0x1000 + 0x100 * u64::from(number)),
            size: 0x80,
            file: Some(file.into()),
            module: None,
        };
        let block = |start: u64, count| {
            let instructions = Instructions(2);
            Block { start: Address(start), last: Address(start + 7), count, instructions, bytes: 8 }
        };
        let tables = Tables {
            symbols: vec![
                symbol(0, "send.llvm.4711", "net/a.c"),
                symbol(1, "entry", "arch/x86/e.S"),
                symbol(2, "never", "net/a.c"),
                symbol(3, "once", "net/a.c"),
            ],
            // The last block is behind the end of every function.
            blocks: vec![
                block(0x1000, 100),
                block(0x1010, 100),
                block(0x1100, 300),
                block(0x1300, 1),
                block(0x1390, 9),
            ],
            ..Tables::default()
        };
        let samples =
            SampleProfile::parse("send:1600:5\n 1: 100\n 2: 100\nonce:8:0\n 1: 1\nnever:0:3\n").unwrap();
        let ran = ran(&tables, None, (&samples, samples.hot_from(HOT_SHARE).unwrap()));
        let short: Vec<_> = ran.iter().map(|f| (f.name.as_str(), f.bytes, f.in_profile, f.hot)).collect();
        assert_eq!(
            short,
            [
                ("entry", 2_400, None, false),
                ("send.llvm.4711", 1_600, Some(1_600), true),
                ("once", 8, Some(8), false)
            ]
        );
        assert!(!ran[0].is_c() && ran[1].is_c());
    }
}
