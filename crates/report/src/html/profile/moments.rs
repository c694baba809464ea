//! The timeline in columns: lanes, bins, slices and the windows of single calls.

use super::cpus::{self, CpuData, CpuSliceColumns};
use super::lanes::{LaneData, Lanes};
use super::numbers::Numbers;
use super::windows::Room;
use super::Timeline;
use kerntune_analyze::timeline::{Detail, Lane, Slice};
use kerntune_profile::Tables;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Serialize)]
pub(super) struct TimeData {
    /// begin, end, first bin, number of bins.
    spans: Vec<(u64, u64, u32, u32)>,
    lanes: Vec<LaneData>,
    bins: BinColumns,
    slices: SliceColumns,
    regions: Vec<(String, u64, u64, u32, u64)>,
    windows: Vec<WindowData>,
    /// Of several CPUs, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<CpuData>,
    /// Windows that did not fit.
    left_out: usize,
}

/// `b` bin less the one before, `l` twice the lane plus 1 for user mode, `n` ns.
#[derive(Serialize, Default)]
struct BinColumns {
    b: Vec<u32>,
    l: Vec<u32>,
    n: Vec<u64>,
}

/// `b` begin less the end before, `n` length, `l` as in [`BinColumns`], `c` the CPU if there are several.
#[derive(Serialize, Default)]
struct SliceColumns {
    b: Vec<u64>,
    n: Vec<u64>,
    l: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    c: Vec<u32>,
}

#[derive(Serialize)]
struct WindowData {
    label: String,
    /// Function whose slowest call it is; -1 for none.
    function: i64,
    begin: u64,
    end: u64,
    whole: bool,
    calls: CallColumns,
    slices: SliceColumns,
    /// Of several CPUs, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<CpuSliceColumns>,
}

/// `b` begin less the one before, `n` length, `l` lane, `k` depth, `f` function, `h` how, `x` 1 for a
/// cut begin plus 2 for a cut end.
#[derive(Serialize, Default)]
struct CallColumns {
    b: Vec<u64>,
    n: Vec<u64>,
    l: Vec<u32>,
    k: Vec<u32>,
    f: Vec<i64>,
    h: Vec<u8>,
    x: Vec<u8>,
}

/// What of the timeline goes on the page.
pub(super) struct Moments<'a> {
    timeline: &'a Timeline<'a>,
    details: Vec<(&'a super::Choice, &'a Detail)>,
    left_out: usize,
}

impl<'a> Moments<'a> {
    pub fn new(timeline: &'a Timeline<'a>) -> Self {
        let mut room = Room::new();
        let mut details: Vec<(&super::Choice, &Detail)> = Vec::new();
        let mut left_out = 0;
        for (choice, detail) in &timeline.windows {
            let inside = |(_, other): &(_, &Detail)| other.begin <= detail.begin && detail.end <= other.end;
            // What is within another window is there already: only its name is added.
            let calls = if details.iter().any(inside) { 0 } else { detail.calls.len() };
            if detail.end > detail.begin && room.take(calls) {
                details.push((choice, detail));
            } else {
                left_out += 1;
            }
        }
        Self { timeline, details, left_out }
    }

    /// All functions that are called in the windows.
    pub fn functions(&self) -> impl Iterator<Item = u32> + '_ {
        self.details.iter().flat_map(|(_, detail)| detail.calls.iter().map(|call| call.function))
    }

    pub fn columns(&self, tables: &Tables, numbers: &Numbers) -> TimeData {
        let overview = &self.timeline.overview;
        let lanes = Lanes::new(self.timeline);
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
        let mut windows: Vec<WindowData> = Vec::new();
        for (choice, detail) in &self.details {
            let inside = windows.iter().any(|w| w.begin <= detail.begin && detail.end <= w.end);
            windows.push(WindowData {
                label: choice.label.clone(),
                function: choice.function.map_or(-1, |function| numbers.of(function)),
                begin: detail.begin,
                end: detail.end,
                whole: detail.whole,
                calls: if inside { CallColumns::default() } else { calls(detail, &lanes, numbers) },
                slices: if inside { SliceColumns::default() } else { slices(&detail.slices, &lanes) },
                cpus: if inside { Vec::new() } else { cpus::slices(&detail.cpus, &lanes) },
            });
        }
        let region = |row: &kerntune_profile::RegionStats| {
            let end = row.begin_ns + row.elapsed_ns;
            (row.name.clone(), row.begin_ns.get(), end.get(), row.depth, row.operations)
        };
        TimeData {
            spans: overview.spans.iter().map(|s| (s.begin, s.end, s.first_bin, s.bins)).collect(),
            bins,
            slices: slices(&overview.slices, &lanes),
            regions: tables.regions.iter().map(region).collect(),
            windows,
            cpus: cpus::data(overview, &lanes),
            lanes: lanes.data,
            left_out: self.left_out,
        }
    }
}

fn slices(slices: &[Slice], lanes: &Lanes) -> SliceColumns {
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

fn calls(detail: &Detail, lanes: &Lanes, numbers: &Numbers) -> CallColumns {
    // Threads that only wait all along would be rows of nothing.
    let mut ran: BTreeSet<Lane> = detail.slices.iter().map(|slice| slice.holder.lane).collect();
    let began = detail.calls.iter().filter(|call| !call.cut_begin);
    ran.extend(began.map(|call| Lane::Thread(call.thread)));
    let mut out = CallColumns::default();
    let mut last = detail.begin;
    for call in &detail.calls {
        let lane = Lane::Thread(call.thread);
        if !ran.contains(&lane) {
            continue;
        }
        out.b.push(call.begin - last);
        out.n.push(call.end - call.begin);
        out.l.push(lanes.lane(lane));
        out.k.push(call.depth);
        out.f.push(numbers.of(call.function));
        out.h.push(call.how as u8);
        out.x.push(u8::from(call.cut_begin) + 2 * u8::from(call.cut_end));
        last = call.begin;
    }
    out
}
