//! Memory that was touched: pages and lines by size of page, accesses by size of page, and what data TLBs reach.

use crate::columns::Side;
use crate::view::share;
use kerntune_compare::number::{fixed, grouped};
use kerntune_profile::{Profile, Scope};
use serde::Serialize;
use std::collections::BTreeMap;

/// Kernel or user memory in pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Touched {
    /// `kernel` or `user`, by address, whoever touches it.
    pub memory: String,
    pub page_bytes: u64,
    /// Pages, and lines in them; none of a merged profile.
    pub pages: Option<u64>,
    pub lines: Option<u64>,
    /// Bytes of those pages, and of those lines.
    pub bytes_of_pages: Option<u64>,
    pub bytes_of_lines: Option<u64>,
    pub loads: u64,
    pub stores: u64,
    /// Of all accesses.
    pub percent_of_accesses: f64,
}

/// What a data TLB of the model reaches with pages of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Reach {
    /// `dtlb`, `dtlb_large`, `stlb`.
    pub tlb: String,
    pub page_bytes: u64,
    pub entries: u64,
    pub bytes: u64,
}

/// Memory that was touched.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Memory {
    pub touched: Vec<Touched>,
    pub reach: Vec<Reach>,
}

impl Memory {
    /// In a region of this name, or in all; nothing of a profile without data.
    pub fn of(profile: &Profile, scope: &Scope, region: Option<&str>) -> Self {
        let tables = &profile.tables;
        let mut rows: BTreeMap<(&str, u64), Touched> = BTreeMap::new();
        for row in tables.page_accesses.iter().filter(|row| scope.contains(row.region)) {
            let sum = rows.entry((&row.memory, row.page_bytes)).or_default();
            sum.loads = sum.loads.saturating_add(row.loads);
            sum.stores = sum.stores.saturating_add(row.stores);
        }
        for row in tables.footprints.iter().filter(|row| row.name == region.unwrap_or_default()) {
            let of = rows.entry((&row.memory, row.page_bytes)).or_default();
            (of.pages, of.lines) = (Some(row.pages), Some(row.lines));
            of.bytes_of_pages = Some(row.pages.saturating_mul(row.page_bytes));
            of.bytes_of_lines = Some(row.lines.saturating_mul(row.line_bytes));
        }
        let accesses = |row: &Touched| row.loads.saturating_add(row.stores);
        let all = rows.values().fold(0u64, |sum, row| sum.saturating_add(accesses(row)));
        let named = |((memory, page_bytes), row): ((&str, u64), Touched)| Touched {
            memory: memory.into(),
            page_bytes,
            percent_of_accesses: share(accesses(&row), all),
            ..row
        };
        let reach = |row: &kerntune_profile::DataTlb| Reach {
            tlb: row.tlb.clone(),
            page_bytes: row.page_bytes,
            entries: row.entries,
            bytes: row.entries.saturating_mul(row.page_bytes),
        };
        Self {
            touched: rows.into_iter().map(named).collect(),
            reach: tables.data_tlbs.iter().map(reach).collect(),
        }
    }

    /// Bytes of all lines that were touched.
    pub fn bytes(&self) -> Option<u64> {
        let known: Vec<u64> = self.touched.iter().filter_map(|row| row.bytes_of_lines).collect();
        (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add))
    }

    /// Of the accesses to user memory, those to pages of more than 4 KiB, per cent.
    pub fn percent_huge(&self) -> Option<f64> {
        let user = || self.touched.iter().filter(|row| row.memory == "user");
        let sum = |large: bool| {
            let rows = user().filter(|row| !large || row.page_bytes > 4096);
            rows.fold(0u64, |sum, row| sum.saturating_add(row.loads).saturating_add(row.stores))
        };
        (sum(false) > 0).then(|| share(sum(true), sum(false)))
    }

    /// What the TLBs reach, in one line; nothing of a model that is not known.
    pub fn reach(&self) -> Option<String> {
        let one = |row: &Reach| {
            format!(
                "{} {} × {} = {}",
                row.tlb,
                grouped(row.entries),
                readable(row.page_bytes),
                readable(row.bytes)
            )
        };
        let all: Vec<String> = self.reach.iter().map(one).collect();
        (!all.is_empty()).then(|| format!("Reach of the model's data TLBs: {}.", all.join(", ")))
    }
}

/// The heads and cells of one line.
pub(crate) const HEADS: [(&str, Side); 8] = [
    ("pages", Side::Right),
    ("of", Side::Right),
    ("pages\nKiB", Side::Right),
    ("lines", Side::Right),
    ("lines\nKiB", Side::Right),
    ("accesses", Side::Right),
    ("% of\naccesses", Side::Right),
    ("memory", Side::Left),
];

pub(crate) fn cells(row: &Touched) -> [String; HEADS.len()] {
    let count = |count: Option<u64>| count.map_or("-".into(), grouped);
    let kib = |bytes: Option<u64>| count(bytes.map(|bytes| bytes.div_ceil(1024)));
    [
        count(row.pages),
        readable(row.page_bytes),
        kib(row.bytes_of_pages),
        count(row.lines),
        kib(row.bytes_of_lines),
        grouped(row.loads.saturating_add(row.stores)),
        fixed(row.percent_of_accesses, 2),
        row.memory.clone(),
    ]
}

/// `4 KiB`, `2 MiB`, `1 GiB`.
fn readable(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >> shift > 0 && bytes % (1 << shift) == 0);
    match unit {
        Some((shift, name)) => format!("{} {name}", grouped(bytes >> shift)),
        None => format!("{} bytes", grouped(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_whole_units() {
        let texts = [4096, 2 << 20, 1 << 30, 1536 << 12, 100].map(readable);
        assert_eq!(texts, ["4 KiB", "2 MiB", "1 GiB", "6 MiB", "100 bytes"]);
    }
}
