//! Sums of the tables of data accesses.

use crate::{
    Address, DataAccesses, DataPath, DataPlace, DataTlb, Footprint, FunctionIndex, PageAccesses, SharedLine,
    Tables,
};
use std::collections::BTreeMap;

/// Kind, object, type and member of the data.
type ObjectKey = (String, String, String, String);

/// Sums over all parts, by the key that a row has in every part.
#[derive(Default)]
pub(crate) struct DataSum {
    accesses: BTreeMap<(u32, String), [u64; 9]>,
    paths: BTreeMap<(u32, String), [u64; 7]>,
    places: BTreeMap<(u32, FunctionIndex, ObjectKey), [u64; 7]>,
    shared: BTreeMap<(u32, Address, u32, u32, ObjectKey), [u64; 3]>,
    pages: BTreeMap<(u32, String, u64), [u64; 2]>,
    /// Footprints if there is one part only: those of several cannot be added.
    footprints: Option<Vec<Footprint>>,
    /// TLBs that all parts have in common.
    tlbs: Option<Vec<DataTlb>>,
}

/// Columns that count misses, as an array.
macro_rules! misses {
    ($row:expr) => {
        [
            $row.l1d_misses,
            $row.l1d_store_misses,
            $row.l2_misses,
            $row.l3_misses,
            $row.transfers,
            $row.dtlb_misses,
            $row.walks,
        ]
    };
}

impl DataSum {
    /// Adds a part times its weight, with new numbers of regions and functions.
    pub fn add(
        &mut self,
        part: &Tables,
        weight: u64,
        region: impl Fn(u32) -> u32,
        function: impl Fn(FunctionIndex) -> FunctionIndex,
    ) {
        fn add(sums: &mut [u64], more: &[u64], weight: u64) {
            for (sum, more) in sums.iter_mut().zip(more) {
                *sum = sum.saturating_add(more.saturating_mul(weight));
            }
        }
        let is_all = self.tlbs.is_none() && weight == 1;
        self.footprints = is_all.then(|| part.footprints.clone());
        let tlbs = self.tlbs.get_or_insert_with(|| part.data_tlbs.clone());
        if *tlbs != part.data_tlbs {
            tlbs.clear();
        }
        for row in &part.page_accesses {
            let key = (region(row.region), row.memory.clone(), row.page_bytes);
            add(self.pages.entry(key).or_default(), &[row.loads, row.stores], weight);
        }
        for row in &part.data_accesses {
            let sums = self.accesses.entry((region(row.region), row.mode.clone())).or_default();
            add(&mut sums[..2], &[row.loads, row.stores], weight);
            add(&mut sums[2..], &misses!(row), weight);
        }
        for row in &part.data_paths {
            add(self.paths.entry((region(row.region), row.path.clone())).or_default(), &misses!(row), weight);
        }
        for row in &part.data_places {
            let place = (row.kind.clone(), row.object.clone(), row.type_name.clone(), row.field.clone());
            let key = (region(row.region), function(row.function), place);
            add(self.places.entry(key).or_default(), &misses!(row), weight);
        }
        for row in &part.shared_lines {
            let place = (row.kind.clone(), row.object.clone(), row.type_name.clone(), row.field.clone());
            let key = (region(row.region), row.line, row.at, row.cpu, place);
            add(self.shared.entry(key).or_default(), &[row.loads, row.stores, row.transfers], weight);
        }
    }

    /// Moves the sums into the tables.
    pub fn finish(self, tables: &mut Tables) {
        let Self { accesses, paths, places, shared, pages, footprints, tlbs } = self;
        tables.footprints = footprints.unwrap_or_default();
        tables.data_tlbs = tlbs.unwrap_or_default();
        tables.page_accesses = pages
            .into_iter()
            .map(|((region, memory, page_bytes), [loads, stores])| PageAccesses {
                region,
                memory,
                page_bytes,
                loads,
                stores,
            })
            .collect();
        tables.data_accesses = accesses
            .into_iter()
            .map(|((region, mode), [loads, stores, l1d, store, l2, l3, transfers, dtlb, walks])| {
                DataAccesses {
                    region,
                    mode,
                    loads,
                    stores,
                    l1d_misses: l1d,
                    l1d_store_misses: store,
                    l2_misses: l2,
                    l3_misses: l3,
                    transfers,
                    dtlb_misses: dtlb,
                    walks,
                }
            })
            .collect();
        tables.data_paths = paths
            .into_iter()
            .map(|((region, path), [l1d, store, l2, l3, transfers, dtlb, walks])| DataPath {
                region,
                path,
                l1d_misses: l1d,
                l1d_store_misses: store,
                l2_misses: l2,
                l3_misses: l3,
                transfers,
                dtlb_misses: dtlb,
                walks,
            })
            .collect();
        tables.data_places = places
            .into_iter()
            .map(|((region, function, place), [l1d, store, l2, l3, transfers, dtlb, walks])| DataPlace {
                region,
                function,
                kind: place.0,
                object: place.1,
                type_name: place.2,
                field: place.3,
                l1d_misses: l1d,
                l1d_store_misses: store,
                l2_misses: l2,
                l3_misses: l3,
                transfers,
                dtlb_misses: dtlb,
                walks,
            })
            .collect();
        tables.shared_lines = shared
            .into_iter()
            .map(|((region, line, at, cpu, place), [loads, stores, transfers])| SharedLine {
                region,
                line,
                at,
                cpu,
                kind: place.0,
                object: place.1,
                type_name: place.2,
                field: place.3,
                loads,
                stores,
                transfers,
            })
            .collect();
    }
}
