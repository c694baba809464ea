//! Evidence of the profile in the linked kernel: hot functions are placed together.
//!
//! With a sample profile Clang puts functions with hot places into `.text.hot.`, and the kernel's
//! linker script keeps that section in one piece before the rest (`TEXT_TEXT` in
//! `include/asm-generic/vmlinux.lds.h`), in all versions before the functions without a profile.
//! Without a profile hot functions are placed by their source files, so that as many of the others
//! come before as behind them.

use super::ExecutedFunction;
use crate::share::share_in_front;
use kerntune_kernel::Symbols;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Placement of hot functions in one kernel's image.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HotCodeEvidence {
    /// Bytes of `.text` covered by functions.
    pub text_bytes: u64,
    /// Functions in `.text`.
    pub functions: u64,
    /// Functions in `.text` that are hot in the profile and have a unique name.
    pub hot: u64,
    /// Share of the pairs of a hot function and one that never ran in which the hot one comes
    /// first, 0 to 1; about 0.5 if the profile is not used. 0 without such pairs.
    pub hot_in_front: f64,
}

impl HotCodeEvidence {
    /// Examines a kernel, given the functions that ran in the training.
    pub(super) fn of(symbols: &Symbols, ran: &[ExecutedFunction]) -> Self {
        let addresses = text(symbols);
        let ran = || ran.iter().filter(|function| function.module.is_none());
        let names: HashSet<&str> = ran().map(|f| f.name.as_str()).collect();
        let never: Vec<u64> = addresses
            .iter()
            .filter(|(name, _)| !names.contains(*name))
            .map(|(_, address)| *address)
            .collect();
        let hot: HashSet<&str> = ran().filter(|f| f.hot).map(|f| f.name.as_str()).collect();
        let hot: Vec<u64> = hot.iter().filter_map(|name| addresses.get(name).copied()).collect();
        Self {
            text_bytes: symbols.text_bytes(),
            functions: addresses.len() as u64,
            hot: hot.len() as u64,
            hot_in_front: share_in_front(&hot, never),
        }
    }
}

/// Returns the functions of `.text` with a unique name.
fn text(symbols: &Symbols) -> HashMap<&str, u64> {
    // Init code follows in sections of its own, which no profile moves.
    let start = symbols.address_of("_stext").unwrap_or(0);
    let end = symbols.address_of("_etext").unwrap_or(u64::MAX);
    let mut seen: HashMap<&str, Option<u64>> = HashMap::new();
    for function in
        symbols.functions().iter().filter(|f| (start..end).contains(&f.address) && !f.is_code_label)
    {
        seen.entry(&function.name).and_modify(|address| *address = None).or_insert(Some(function.address));
    }
    seen.into_iter().filter_map(|(name, address)| Some((name, address?))).collect()
}
