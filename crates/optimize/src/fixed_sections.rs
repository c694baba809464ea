//! Parts of the kernel's code that no profile moves.

use kerntune_kernel::Symbols;
use std::ops::Range;

/// Kernel sections, named by the symbols around them: `__sched_text_start`, `__sched_text_end`.
const FIXED_SECTIONS: &[&str] =
    &["sched", "lock", "kprobes", "cpuidle", "entry", "noinstr", "irqentry", "softirqentry"];

/// Returns the addresses of these sections in an image.
pub(crate) fn fixed_sections(symbols: &Symbols) -> Vec<Range<u64>> {
    let section = |name: &&str| {
        let mark = |end| symbols.address_of(&format!("__{name}_text_{end}"));
        Some(mark("start")?..mark("end")?)
    };
    FIXED_SECTIONS.iter().filter_map(section).collect()
}
