//! Functions of two kernels side by side.

use crate::view::View;
use crate::Result;
use kerntune_profile::{FunctionTotals, Profile};
use std::collections::BTreeMap;

/// One function of the source in both kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Joined {
    pub name: String,
    pub before: Option<FunctionTotals>,
    pub after: Option<FunctionTotals>,
}

impl Joined {
    /// Its weight in the choice of what is shown: the greater net time of both.
    fn weight(&self) -> u64 {
        [&self.before, &self.after].into_iter().flatten().map(|totals| totals.net_ns.get()).max().unwrap_or(0)
    }
}

/// All functions of both, the heaviest first.
pub(super) fn join(before: &Profile, after: &Profile) -> Result<Vec<Joined>> {
    let mut sides: BTreeMap<String, [Option<FunctionTotals>; 2]> = BTreeMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for row in View::new(profile, None)?.functions {
            let (name, is_cold_part) = source_name(&row.name);
            // The cold part of a function is entered by a jump: its time counts, its entries are
            // not calls of the function.
            let totals =
                FunctionTotals { calls: if is_cold_part { 0 } else { row.totals.calls }, ..row.totals };
            let none = FunctionTotals::none(totals.function);
            sides.entry(name.into()).or_default()[side].get_or_insert(none).add(&totals);
        }
    }
    let mut joined: Vec<_> =
        sides.into_iter().map(|(name, [before, after])| Joined { name, before, after }).collect();
    joined.sort_by_key(|row| std::cmp::Reverse(row.weight()));
    Ok(joined)
}

/// The function of the source that a symbol belongs to, and whether it is only its cold part:
/// compilers add `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.1234`, each perhaps with a
/// number, to what they made of a function.
fn source_name(symbol: &str) -> (&str, bool) {
    const ADDED: [&str; 8] =
        ["isra", "constprop", "part", "cold", "llvm", "lto_priv", "__uniq", "localalias"];
    let mut name = symbol;
    let mut cold = false;
    while let Some((head, tail)) = name.rsplit_once('.') {
        let number = !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
        if head.is_empty() || !(number || ADDED.contains(&tail)) {
            break;
        }
        cold |= tail == "cold";
        name = head;
    }
    (name, cold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compilers_add_is_taken_off() {
        for (symbol, name, cold) in [
            ("tcp_sendmsg", "tcp_sendmsg", false),
            ("tcp_ack.constprop.0", "tcp_ack", false),
            ("__alloc_skb.part.0.isra.0.cold", "__alloc_skb", true),
            ("vfs_read.llvm.8123", "vfs_read", false),
            (".L123", ".L123", false),
            ("a.b", "a.b", false),
            ("", "", false),
        ] {
            assert_eq!(source_name(symbol), (name, cold), "{symbol}");
        }
    }
}
