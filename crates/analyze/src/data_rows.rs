//! Rows of the tables about misses of data accesses.

use crate::AnalysisInput;
use kerntune_profile::{
    Address, DataAccesses, DataPath, DataPlace, DataTlb, Footprint, FunctionIndex, PageAccesses, SharedLine,
    Tables,
};
use kerntune_trace::data::{AccessCounts, DataFile, DataLocation, DataLocationKind, MissCounts};
use std::collections::BTreeMap;

/// Data misses from the recorder, with the names of their locations.
#[derive(Clone, Copy)]
pub struct DataInput<'a> {
    /// The recorder's file of data misses.
    pub file: &'a DataFile,
    /// Returns variable or slab cache, type, and member of a location; each may be empty.
    pub name: &'a (dyn Fn(&DataLocation) -> [String; 3] + Sync),
    /// Size of a cache line of the model, in bytes.
    pub line_bytes: u64,
    /// The model's data TLBs: name, page size in bytes, number of translations.
    pub tlbs: &'a [(&'static str, u64, u64)],
}

/// Returns the name of a kind of memory, as in the profile's tables.
fn kind_name(kind: DataLocationKind) -> &'static str {
    match kind {
        DataLocationKind::User => "user",
        DataLocationKind::Image => "variable",
        DataLocationKind::PerCpu => "per-CPU",
        DataLocationKind::Slab => "slab",
        DataLocationKind::Page => "page struct",
        DataLocationKind::Stack => "stack",
        DataLocationKind::Memory => "memory",
        DataLocationKind::Mapped => "mapped",
        DataLocationKind::Other => "other",
    }
}

/// Adds the rows; a recording without data accesses has none.
pub(crate) fn add(tables: &mut Tables, input: &AnalysisInput<'_>) {
    let Some(DataInput { file, name, line_bytes, tlbs }) = input.data else { return };
    for row in &file.regions {
        for (mode, accesses) in [("kernel", row.kernel), ("user", row.user)] {
            let AccessCounts { loads, stores, misses } = accesses;
            let MissCounts { l1d, stores: store, l2, l3, transfers, dtlb, walks } = misses;
            tables.data_accesses.push(DataAccesses {
                region: row.region,
                mode: mode.into(),
                loads,
                stores,
                l1d_misses: l1d,
                l1d_store_misses: store,
                l2_misses: l2,
                l3_misses: l3,
                transfers,
                dtlb_misses: dtlb,
                walks,
            });
        }
    }
    let unknown = input.recording.kernel_functions;
    let function_name = |function: &u32| match input.symbols.get(*function as usize) {
        Some(symbol) => symbol.name.as_str(),
        None => crate::known::UNKNOWN,
    };
    let mut paths: BTreeMap<(u32, String), MissCounts> = BTreeMap::new();
    for row in &file.by_path {
        let functions = file.paths.get(row.path as usize).map(Vec::as_slice).unwrap_or_default();
        let path = functions.iter().map(function_name).collect::<Vec<_>>().join(";");
        sum(paths.entry((row.region, path)).or_default(), row.misses);
    }
    for ((region, path), MissCounts { l1d, stores, l2, l3, transfers, dtlb, walks }) in paths {
        tables.data_paths.push(DataPath {
            region,
            path,
            l1d_misses: l1d,
            l1d_store_misses: stores,
            l2_misses: l2,
            l3_misses: l3,
            transfers,
            dtlb_misses: dtlb,
            walks,
        });
    }
    // Several addresses have the same name: elements of arrays, objects of one cache.
    let mut places: BTreeMap<(u32, FunctionIndex, &str, [String; 3]), MissCounts> = BTreeMap::new();
    for row in &file.by_place {
        let known = |function: u32| if input.symbols.len() > function as usize { function } else { unknown };
        let function = row.function.map_or(FunctionIndex::NONE, |function| FunctionIndex(known(function)));
        let key = (row.region, function, kind_name(row.place.kind), name(&row.place));
        sum(places.entry(key).or_default(), row.misses);
    }
    for ((region, function, kind, [object, type_name, field]), misses) in places {
        let MissCounts { l1d, stores, l2, l3, transfers, dtlb, walks } = misses;
        tables.data_places.push(DataPlace {
            region,
            function,
            kind: kind.into(),
            object,
            type_name,
            field,
            l1d_misses: l1d,
            l1d_store_misses: stores,
            l2_misses: l2,
            l3_misses: l3,
            transfers,
            dtlb_misses: dtlb,
            walks,
        });
    }
    for line in &file.shared {
        for piece in &line.pieces {
            let [object, type_name, field] = name(&piece.place);
            tables.shared_lines.push(SharedLine {
                region: line.region,
                line: Address(line.line),
                at: piece.at,
                cpu: piece.cpu,
                kind: kind_name(piece.place.kind).into(),
                object,
                type_name,
                field,
                loads: piece.loads,
                stores: piece.stores,
                transfers: piece.transfers,
            });
        }
    }
    let memory = |user: bool| if user { "user" } else { "kernel" }.to_owned();
    tables.page_accesses.extend(file.pages.iter().map(|row| PageAccesses {
        region: row.region,
        memory: memory(row.user),
        page_bytes: row.page_bytes,
        loads: row.loads,
        stores: row.stores,
    }));
    tables.footprints.extend(file.footprints.iter().map(|row| Footprint {
        name: row.region.clone().unwrap_or_default(),
        memory: memory(row.user),
        page_bytes: row.page_bytes,
        pages: row.pages,
        lines: row.lines,
        line_bytes,
    }));
    let tlb =
        |&(tlb, page_bytes, entries): &(&str, u64, u64)| DataTlb { tlb: tlb.into(), page_bytes, entries };
    tables.data_tlbs.extend(tlbs.iter().map(tlb));
    let inside = tables.regions.len() as u32;
    tables.page_accesses.retain(|row| row.region < inside);
    tables.data_accesses.retain(|row| row.region < inside);
    tables.data_paths.retain(|row| row.region < inside);
    tables.data_places.retain(|row| row.region < inside);
    tables.shared_lines.retain(|row| row.region < inside);
}

fn sum(sum: &mut MissCounts, more: MissCounts) {
    let MissCounts { l1d, stores, l2, l3, transfers, dtlb, walks } = more;
    for (sum, more) in [
        (&mut sum.l1d, l1d),
        (&mut sum.stores, stores),
        (&mut sum.l2, l2),
        (&mut sum.l3, l3),
        (&mut sum.transfers, transfers),
        (&mut sum.dtlb, dtlb),
        (&mut sum.walks, walks),
    ] {
        *sum = sum.saturating_add(more);
    }
}
