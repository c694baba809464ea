//! Timeline in columns: lanes, bins, slices, places to jump to, and the trace's chunks.

use super::cpus::{self, CpuData};
use super::lanes::{LaneData, TimelineLanes};
use super::numbers::{code, PageIndex, NONE};
use super::{ChunkStorage, TraceTimeline};
use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use kerntune_analyze::timeline::{HolderSlice, TimelineLane};
use kerntune_profile::Profile;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct TimeData {
    /// Begin, end, first bin, number of bins.
    spans: Vec<(u64, u64, u32, u32)>,
    lanes: Vec<LaneData>,
    bins: BinColumns,
    slices: SliceColumns,
    regions: Vec<(String, u64, u64, u32, u64)>,
    /// Label, function or -1, begin, end.
    places: Vec<(String, i64, u64, u64)>,
    /// By CPU, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<CpuData>,
    cpu_count: u32,
    /// By thread of the trace: the code of its root in the tree, and its lane.
    threads: Vec<(i64, u32)>,
    /// Lane of threads missing in the trace.
    unknown: u32,
    /// By region of the trace: its group, or -1 if it is left out.
    groups: Vec<i64>,
    /// Functions from this number on are user code.
    kernel_functions: u32,
    /// Functions from this number on are again the kernel's: code that it loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_loaded: Option<u32>,
    /// Events carry weights: taken branches and misses.
    wide: bool,
    chunks: ChunkColumns,
}

/// `b` bin minus the previous one, `l` twice the lane plus 1 for user mode, `n` ns.
#[derive(Serialize, Default)]
struct BinColumns {
    b: Vec<u32>,
    l: Vec<u32>,
    n: Vec<u64>,
}

/// `b` begin minus the previous end, `n` length, `l` as in [`BinColumns`], `c` the CPU if there are
/// several.
#[derive(Serialize, Default)]
struct SliceColumns {
    b: Vec<u64>,
    n: Vec<u64>,
    l: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    c: Vec<u32>,
}

/// `b` begin minus the previous end, `e` length, `n` events, `o` offset in the page's trace (-1:
/// not on the page; -2: of no region on the page), `l` bytes.
#[derive(Serialize, Default)]
struct ChunkColumns {
    b: Vec<u64>,
    e: Vec<u64>,
    n: Vec<u32>,
    o: Vec<i64>,
    l: Vec<usize>,
}

/// Converts the timeline to columns.
pub(super) fn columns(timeline: &TraceTimeline, profile: &Profile, index: &mut PageIndex) -> TimeData {
    let PageIndex { numbers, groups, comms, .. } = index;
    let TraceTimeline { recording, overview, .. } = timeline;
    let lanes = TimelineLanes::new(timeline);
    let mut bins = BinColumns::default();
    let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for bin in &overview.bins {
        let sum = sums.entry((bin.bin, lanes.holder(bin.holder))).or_default();
        *sum = sum.saturating_add(bin.ns);
    }
    let mut last = 0;
    for ((bin, lane), ns) in sums {
        bins.b.push(bin - last);
        bins.l.push(lane);
        bins.n.push(ns);
        last = bin;
    }
    let region = |row: &kerntune_profile::RegionStats| {
        let end = row.begin_ticks + row.elapsed_ticks;
        (row.name.clone(), row.begin_ticks.get(), end.get(), row.depth, row.operations)
    };
    let places = timeline.places.iter().map(|place| {
        let function = place.function.map_or(NONE, |function| numbers.of(function));
        (place.label.clone(), function, place.begin, place.end)
    });
    let threads = recording.threads.iter().zip(0..).map(|(thread, number)| {
        let is_idle = thread.pid == 0 && thread.task != 0;
        let root = if is_idle { code::IDLE } else { code::THREAD - comms.at(&thread.comm) };
        (root, lanes.lane(TimelineLane::Thread(number)))
    });
    let threads = threads.collect();
    let group = |region: &Option<u32>| region.map_or(NONE, i64::from);
    TimeData {
        spans: overview.spans.iter().map(|s| (s.begin, s.end, s.first_bin, s.bins)).collect(),
        bins,
        slices: slices(&overview.slices, &lanes),
        regions: profile.tables.regions.iter().map(region).collect(),
        places: places.collect(),
        cpus: cpus::data(overview, &lanes),
        cpu_count: recording.cpus.max(1),
        threads,
        unknown: lanes.lane(TimelineLane::Unknown),
        groups: groups.of_region.iter().map(group).collect(),
        kernel_functions: recording.kernel_functions,
        first_loaded: recording.first_loaded,
        wide: timeline.wide,
        chunks: chunks(timeline),
        lanes: lanes.data,
    }
}

fn chunks(timeline: &TraceTimeline) -> ChunkColumns {
    let mut out = ChunkColumns::default();
    let (mut last, mut offset) = (0, 0);
    for (at, chunk) in timeline.recording.chunks.iter().enumerate() {
        out.b.push(chunk.begin_ns.saturating_sub(last));
        out.e.push(chunk.end_ns.saturating_sub(chunk.begin_ns));
        out.n.push(chunk.events);
        last = chunk.end_ns;
        let (place, bytes) = match timeline.chunks.get(at) {
            Some(ChunkStorage::Here(bytes)) => (offset, bytes.len()),
            Some(ChunkStorage::Elsewhere) => (-2, 0),
            Some(ChunkStorage::Served) => (0, 0),
            Some(ChunkStorage::LeftOut) | None => (-1, 0),
        };
        offset += bytes.div_ceil(3) as i64 * 4;
        out.o.push(place);
        out.l.push(bytes);
    }
    out
}

/// Encodes the embedded chunks, each in its own base64, one after the other.
pub(super) fn embedded(chunks: &[ChunkStorage]) -> String {
    let mut out = String::new();
    for chunk in chunks {
        if let ChunkStorage::Here(bytes) = chunk {
            STANDARD.encode_string(bytes, &mut out);
        }
    }
    out
}

fn slices(slices: &[HolderSlice], lanes: &TimelineLanes) -> SliceColumns {
    let mut out = SliceColumns::default();
    let mut last = 0;
    for slice in slices {
        out.b.push(slice.begin.saturating_sub(last));
        out.n.push(slice.end - slice.begin);
        out.l.push(lanes.holder(slice.holder));
        if lanes.cpus > 1 {
            out.c.push(slice.cpu);
        }
        last = slice.end;
    }
    out
}
