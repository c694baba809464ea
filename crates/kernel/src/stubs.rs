//! The stubs through which device interrupts reach the kernel, one for each vector.
//!
//! The symbol table has one label for all of them. Here each becomes a function of its own,
//! `asm_common_interrupt:0x23`, so that what a device costs is seen by its vector.

use crate::raw_symbols::Raw;
use crate::symbol_groups::Group;
use kerntune_isa::{Guest, Isa};

/// Puts the stubs in the place of their label. `bytes(address, size)` reads code. A label whose code is
/// something else stays as it is.
pub(crate) fn split(groups: Vec<Group>, bytes: impl Fn(u64, u64) -> Option<Vec<u8>>) -> Vec<Group> {
    let name_at = |address: u64| {
        let at = groups.binary_search_by_key(&address, |group| group.first().address).ok()?;
        Some(groups[at].first().name.clone())
    };
    let stubs = |group: &Group| {
        let label = group.first();
        if !Guest::STUB_LABELS.contains(&label.name.as_str()) {
            return None;
        }
        let code = bytes(label.address, group.size)?;
        let found = Guest::interrupt_stubs(&code, label.address);
        let ends =
            found.iter().skip(1).map(|stub| stub.address).chain([label.address.saturating_add(group.size)]);
        let made: Option<Vec<Group>> = found
            .iter()
            .zip(ends)
            .map(|(stub, end)| {
                let name = format!("{}:{:#04x}", name_at(stub.target)?, stub.vector);
                let raw = Raw {
                    name,
                    address: stub.address,
                    size: end.saturating_sub(stub.address),
                    ..label.clone()
                };
                Some(Group::of(raw))
            })
            .collect();
        made.filter(|made| !made.is_empty())
    };
    let made: Vec<Option<Vec<Group>>> = groups.iter().map(stubs).collect();
    groups.into_iter().zip(made).flat_map(|(group, made)| made.unwrap_or_else(|| vec![group])).collect()
}
