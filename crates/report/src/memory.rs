//! Memory touched by a workload: pages, lines and accesses by page size, and the reach of data
//! TLBs.

use kerntune_profile::{Profile, RegionScope};
use kerntune_table::number::grouped;
use kerntune_table::{share, Columns};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Kernel or user memory in pages of one size.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TouchedMemory {
    /// `kernel` or `user`, by address, whichever mode accesses it.
    pub memory: String,
    pub page_bytes: u64,
    /// Touched pages, and lines in them; `None` for a merged profile.
    pub pages: Option<u64>,
    pub lines: Option<u64>,
    /// Bytes of those pages, and of those lines.
    pub bytes_of_pages: Option<u64>,
    pub bytes_of_lines: Option<u64>,
    pub loads: u64,
    pub stores: u64,
    /// Share of all accesses.
    pub percent_of_accesses: f64,
}

/// Reach of one of the model's data TLBs with pages of one size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TlbReach {
    /// `dtlb`, `dtlb_large` or `stlb`.
    pub tlb: String,
    pub page_bytes: u64,
    pub entries: u64,
    pub bytes: u64,
}

/// Touched memory by page size, with the reach of the model's TLBs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MemoryUse {
    pub touched: Vec<TouchedMemory>,
    pub reach: Vec<TlbReach>,
}

impl MemoryUse {
    /// Adds up the accesses of a scope; empty for a profile without data accesses.
    pub fn of(profile: &Profile, scope: &RegionScope, region: Option<&str>) -> Self {
        let tables = &profile.tables;
        let mut rows: BTreeMap<(&str, u64), TouchedMemory> = BTreeMap::new();
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
        let accesses = |row: &TouchedMemory| row.loads.saturating_add(row.stores);
        let all = rows.values().fold(0u64, |sum, row| sum.saturating_add(accesses(row)));
        let named = |((memory, page_bytes), row): ((&str, u64), TouchedMemory)| TouchedMemory {
            memory: memory.into(),
            page_bytes,
            percent_of_accesses: share(accesses(&row), all),
            ..row
        };
        let reach = |row: &kerntune_profile::DataTlb| TlbReach {
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

    /// Declares the members of the JSON form.
    pub fn columns<'a>() -> Columns<'a, Self> {
        let mut of_reach = Columns::<TlbReach>::new();
        of_reach.add("tlb", "`dtlb`, `dtlb_large` or `stlb`.", |row| row.tlb.clone());
        of_reach.add("page_bytes", "Size of a page.", |row| row.page_bytes);
        of_reach.add("entries", "Entries for such pages.", |row| row.entries);
        of_reach.add("bytes", "Memory that they reach.", |row| row.bytes);
        let mut fields = Columns::<Self>::new();
        fields.records("touched", "Memory by page size.", columns(), |row| row.touched.clone());
        fields.records("reach", "Data TLBs of the model.", of_reach, |row| row.reach.clone());
        fields
    }

    /// Returns the bytes of all touched lines.
    pub fn bytes(&self) -> Option<u64> {
        let known: Vec<u64> = self.touched.iter().filter_map(|row| row.bytes_of_lines).collect();
        (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add))
    }

    /// Returns the share of accesses to user memory that hit pages above 4 KiB, in per cent.
    pub fn percent_huge(&self) -> Option<f64> {
        let user = || self.touched.iter().filter(|row| row.memory == "user");
        let sum = |large: bool| {
            let rows = user().filter(|row| !large || row.page_bytes > 4096);
            rows.fold(0u64, |sum, row| sum.saturating_add(row.loads).saturating_add(row.stores))
        };
        (sum(false) > 0).then(|| share(sum(true), sum(false)))
    }

    /// Describes the reach of the TLBs in one line; `None` if the model is unknown.
    pub fn reach(&self) -> Option<String> {
        let one = |row: &TlbReach| {
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

impl Serialize for MemoryUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::columns().to_record(self).serialize(serializer)
    }
}

/// Declares the columns of the table of touched memory.
pub(crate) fn columns<'a>() -> Columns<'a, TouchedMemory> {
    let kib = |bytes: Option<u64>| bytes.map_or("-".into(), |bytes| grouped(bytes.div_ceil(1024)));
    let mut columns = Columns::<TouchedMemory>::new();
    columns
        .add("pages", "Pages that were touched; null of a merged profile.", |row| row.pages)
        .head("pages")
        .null("-");
    columns
        .add("page_bytes", "Size of a page.", |row| row.page_bytes)
        .head("of")
        .text(|row| readable(row.page_bytes));
    columns
        .add("bytes_of_pages", "Bytes of these pages; null of a merged profile.", |row| row.bytes_of_pages)
        .head("pages\nKiB")
        .text(move |row| kib(row.bytes_of_pages));
    columns
        .add("lines", "Lines that were touched; null of a merged profile.", |row| row.lines)
        .head("lines")
        .null("-");
    columns
        .add("bytes_of_lines", "Bytes of these lines; null of a merged profile.", |row| row.bytes_of_lines)
        .head("lines\nKiB")
        .text(move |row| kib(row.bytes_of_lines));
    columns.add("loads", "Loads.", |row| row.loads);
    columns.add("stores", "Stores.", |row| row.stores);
    columns.text_only("accesses", |row| row.loads.saturating_add(row.stores));
    columns
        .add("percent_of_accesses", "Share of all accesses, in percent.", |row| row.percent_of_accesses)
        .head("% of\naccesses")
        .decimals(2);
    columns.add("memory", "`kernel` or `user`, by address.", |row| row.memory.clone()).head("memory");
    columns
}

/// Formats a power-of-two size: `4 KiB`, `2 MiB`, `1 GiB`.
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
