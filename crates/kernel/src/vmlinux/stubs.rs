//! Stubs through which device interrupts enter the kernel, one for each vector.
//!
//! The symbol table has one label for all of them. Here each becomes a function of its own,
//! `asm_common_interrupt:0x23`, so that the cost of a device is seen by its vector.

use crate::vmlinux::raw_symbols::RawSymbol;
use crate::vmlinux::symbol_groups::SymbolGroup;
use kerntune_isa::{GuestIsa, Isa};

/// Replaces the label by its stubs. `bytes(address, size)` reads code. A label with other code
/// stays as it is.
pub(crate) fn split<'data>(
    groups: Vec<SymbolGroup>,
    bytes: impl Fn(u64, u64) -> Option<&'data [u8]>,
) -> Vec<SymbolGroup> {
    let name_at = |address: u64| {
        let at = groups.binary_search_by_key(&address, |group| group.first().address).ok()?;
        Some(groups[at].first().name.clone())
    };
    let stubs = |group: &SymbolGroup| {
        let label = group.first();
        if !GuestIsa::STUB_LABELS.contains(&label.name.as_str()) {
            return None;
        }
        let code = bytes(label.address, group.size)?;
        let found = GuestIsa::interrupt_stubs(code, label.address);
        let ends =
            found.iter().skip(1).map(|stub| stub.address).chain([label.address.saturating_add(group.size)]);
        let made: Option<Vec<SymbolGroup>> = found
            .iter()
            .zip(ends)
            .map(|(stub, end)| {
                let name = format!("{}:{:#04x}", name_at(stub.target)?, stub.vector);
                let raw = RawSymbol {
                    name,
                    address: stub.address,
                    size: end.saturating_sub(stub.address),
                    ..label.clone()
                };
                Some(SymbolGroup::of(raw))
            })
            .collect();
        made.filter(|made| !made.is_empty())
    };
    let made: Vec<Option<Vec<SymbolGroup>>> = groups.iter().map(stubs).collect();
    groups.into_iter().zip(made).flat_map(|(group, made)| made.unwrap_or_else(|| vec![group])).collect()
}
